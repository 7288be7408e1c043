//! The name of a program as a person would say it, from its command line: the link by which it was started, the script or module that an interpreter
//! runs, the archive of a Java program.
//!
//! Invariant: a name that differs in each run, such as that of a temporary script, is never taken. Command lines are text of foreign programs, which
//! may replace it while they run.

use plumb_interpreters::{CommandLine, LANGUAGES};

/// Longest name.
const LONGEST: usize = 64;
/// Folders of files of a single run.
const TEMPORARY: [&str; 5] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/proc/"];

/// A program's name and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramName {
    /// The name.
    pub name: String,
    /// The version in the name of a Java archive.
    pub version: Option<String>,
    /// Whether its user gave it the name, by an option of OpenTelemetry's Java agent.
    pub is_given: bool,
}

impl ProgramName {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// Interpreters whose frames are not read, and compilers' virtual machines.
const OTHERS: [CommandLine; 7] = {
    const fn new(
        programs: &'static [&'static str],
        with_value: &'static [&'static str],
        module: &'static [&'static str],
        text: &'static [&'static str],
    ) -> CommandLine {
        CommandLine { programs, with_value, module, text }
    }
    [
        new(&["pypy"], &["-W", "-X", "--jit"], &["-m"], &["-c"]),
        new(&["bun"], &["-r", "--preload", "--cwd", "-c", "--config"], &[], &["-e", "--eval"]),
        new(&["dotnet"], &["--runtimeconfig", "--depsfile", "--additionalprobingpath"], &[], &[]),
        new(&["bash"], &["-o", "-O", "--rcfile", "--init-file"], &[], &["-c"]),
        new(&["dash"], &["-o"], &[], &["-c"]),
        new(&["zsh"], &["-o"], &[], &["-c"]),
        new(&["lua"], &["-l"], &[], &["-e"]),
    ]
};

/// The name of a program from its file and its command line, whose arguments end with a NUL each. `None`: its file's name says it.
pub(crate) fn program_name(exe: &str, command_line: &[u8]) -> Option<ProgramName> {
    let words: Vec<&str> =
        command_line.split(|&byte| byte == 0).map(|word| std::str::from_utf8(word).unwrap_or("")).collect();
    let file = file_name(exe);
    let arguments = words.get(1..).unwrap_or_default();
    if file == "java" {
        return java(arguments);
    }
    let known = LANGUAGES.iter().map(|language| &language.command).chain(&OTHERS);
    let found = known
        .flat_map(|line| line.programs.iter().map(move |program| (line, *program)))
        .find(|(_, program)| is_version_of(file, program));
    if let Some((line, program)) = found {
        let script = script(line, arguments);
        // A program that shows its state, or was started by a link: `puma: worker`, `sh`.
        let started = || started_as(words.first()?).filter(|name| !is_version_of(name, program));
        return script.as_deref().or_else(started).map(ProgramName::new);
    }
    let started = started_as(words.first()?)?;
    (started != file).then(|| ProgramName::new(started))
}

/// The name of the file that a process executes.
pub(crate) fn file_name(exe: &str) -> &str {
    last_part(exe.strip_suffix(" (deleted)").unwrap_or(exe))
}

/// The name of the script or module that an interpreter runs.
fn script(line: &CommandLine, arguments: &[&str]) -> Option<String> {
    let mut rest = arguments.iter();
    while let Some(&word) = rest.next() {
        if line.module.contains(&word) {
            return rest.next().and_then(|module| accepted(module.split('.').next().unwrap_or_default()));
        }
        if line.text.contains(&word) || word == "-" {
            return None;
        }
        if line.with_value.contains(&word) {
            rest.next();
        } else if !word.starts_with('-') {
            return script_name(word);
        }
    }
    None
}

/// The name of a script: that of its file, or of its folder where each program calls this file alike.
fn script_name(path: &str) -> Option<String> {
    if TEMPORARY.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").rev();
    let file = parts.next()?;
    let name = match file.rsplit_once('.') {
        Some((name, extension)) if !name.is_empty() && is_extension(extension) => name,
        _ => file,
    };
    let is_general = GENERAL.contains(&name);
    let folder = parts.find(|part| !GENERAL_FOLDERS.contains(part)).and_then(accepted);
    if is_general && folder.is_some() { folder } else { accepted(name) }
}

/// Whether this is the extension of a program's file.
fn is_extension(extension: &str) -> bool {
    /// Extensions of other languages.
    const OTHERS: [&str; 7] = ["js", "mjs", "cjs", "ts", "sh", "lua", "dll"];
    LANGUAGES.iter().any(|language| language.extensions.contains(&extension)) || OTHERS.contains(&extension)
}

/// Names of files that say nothing of the program.
const GENERAL: [&str; 8] = ["__main__", "main", "index", "app", "server", "start", "run", "cli"];
/// Names of folders that say nothing of the program.
const GENERAL_FOLDERS: [&str; 8] = ["src", "dist", "bin", "lib", "build", "out", "app", ".."];

/// The name of a Java program: what OpenTelemetry's agent is told, its archive, its module or its main class.
fn java(arguments: &[&str]) -> Option<ProgramName> {
    const WITH_VALUE: [&str; 9] = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "--add-opens",
        "--add-exports",
        "--upgrade-module-path",
    ];
    let given = arguments.iter().find_map(|word| word.strip_prefix("-Dotel.service.name="));
    if let Some(name) = given.and_then(accepted) {
        return Some(ProgramName { name, version: None, is_given: true });
    }
    let mut rest = arguments.iter();
    while let Some(&word) = rest.next() {
        match word {
            "-jar" => return archive(rest.next()?),
            "-m" | "--module" => {
                let module = rest.next()?.split('/').next()?;
                return accepted(module).map(|name| ProgramName::new(&name));
            }
            _ if WITH_VALUE.contains(&word) => _ = rest.next(),
            _ if word.starts_with('-') || word.starts_with('@') => {}
            class => return main_class(class).map(|name| ProgramName::new(&name)),
        }
    }
    None
}

/// The name of an archive without its version, which is another one after each deployment.
fn archive(path: &str) -> Option<ProgramName> {
    let file = last_part(path);
    let name = file.strip_suffix(".jar").or_else(|| file.strip_suffix(".war")).unwrap_or(file);
    let digit = |text: &str| text.starts_with(|one: char| one.is_ascii_digit());
    let version = name.match_indices('-').find(|&(place, _)| digit(&name[place + 1..]));
    let (name, version) = match version {
        Some((place, _)) if place > 0 => (&name[..place], Some(name[place + 1..].to_owned())),
        _ => (name, None),
    };
    accepted(name).map(|name| ProgramName { name, version, is_given: false })
}

/// The name of a main class; of its package if all programs call the class alike.
fn main_class(class: &str) -> Option<String> {
    const ALIKE: [&str; 5] = ["Main", "App", "Application", "Launcher", "Server"];
    let mut parts = class.rsplit(['.', '/']);
    let last = parts.next()?;
    let package = parts.next().filter(|_| ALIKE.contains(&last));
    accepted(package.unwrap_or(last))
}

/// The name by which a program was started; programs that show their state there begin with their name (`postgres: walwriter`).
fn started_as(first: &str) -> Option<&str> {
    let word = first.split([' ', '\t']).next()?;
    let name = last_part(word.strip_suffix(':').unwrap_or(word));
    let name = name.strip_prefix('-').unwrap_or(name);
    is_name(name).then_some(name)
}

fn accepted(name: impl AsRef<str>) -> Option<String> {
    is_name(name.as_ref()).then(|| name.as_ref().to_owned())
}

fn is_name(name: &str) -> bool {
    let is_part = |one: char| one.is_ascii_alphanumeric() || "._+-".contains(one);
    let is_word = name.starts_with(|one: char| one.is_ascii_alphanumeric() || one == '_');
    is_word && name.len() <= LONGEST && name.chars().all(is_part)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a file name is a program's with a version behind it, or none: `python3.11`.
fn is_version_of(file: &str, program: &str) -> bool {
    let rest = file.strip_prefix(program);
    rest.is_some_and(|rest| rest.chars().all(|one| one.is_ascii_digit() || ".-t".contains(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(exe: &str, words: &[&str]) -> Option<String> {
        program_name(exe, &[words.join("\0").as_bytes(), b"\0"].concat()).map(|program| program.name)
    }

    #[test]
    fn programs_have_the_names_that_people_say() {
        for (exe, words, expected) in [
            ("/usr/bin/redis-check-rdb", &["/usr/bin/redis-server 127.0.0.1:6379"][..], Some("redis-server")),
            ("/usr/lib/postgresql/15/bin/postgres", &["postgres: walwriter "], None),
            ("/usr/sbin/nginx", &["nginx: worker process"], None),
            ("/bin/busybox", &["sh"], Some("sh")),
            ("/usr/bin/bash", &["-bash"], None),
            ("/usr/bin/dash", &["sh", "-c", "true"], Some("sh")),
            (
                "/usr/bin/bash",
                &["/bin/bash", "-e", "/usr/lib/apt/apt.systemd.daily", "update"],
                Some("apt.systemd.daily"),
            ),
            ("/usr/bin/python3.11", &["python3", "/srv/shop/price.py"], Some("price")),
            ("/usr/bin/python3.11", &["python", "-u", "-W", "ignore", "-m", "http.server"], Some("http")),
            (
                "/usr/bin/python3.11",
                &["/usr/bin/python3", "/usr/local/bin/gunicorn", "shop:app"],
                Some("gunicorn"),
            ),
            ("/usr/bin/python3.11", &["python3", "-c", "import x"], None),
            ("/usr/bin/python3.11", &["python3"], None),
            ("/usr/bin/python3.11", &["python3", "/tmp/tmpab12/run.py"], None),
            ("/usr/bin/python3.11", &["python3", "/srv/shop/src/main.py"], Some("shop")),
            ("/usr/bin/python3.11", &["python3", "main.py"], Some("main")),
            ("/usr/bin/python3.13t", &["python3.13t", "a.py"], Some("a")),
            ("/usr/bin/node", &["node", "--require", "./trace.js", "/srv/cart/dist/index.js"], Some("cart")),
            ("/usr/bin/ruby3.1", &["puma: cluster worker 0: 12 [shop]"], Some("puma")),
            ("/usr/bin/perl", &["/usr/bin/perl", "-w", "/usr/bin/cloc"], Some("cloc")),
            ("/usr/bin/php8.2", &["php", "/srv/shop/artisan", "queue:work"], Some("artisan")),
            ("/usr/sbin/php-fpm8.2", &["php-fpm: pool www"], Some("php-fpm")),
            ("/usr/bin/dotnet", &["dotnet", "/app/Shop.dll"], Some("Shop")),
            ("/opt/shop/bin/shop", &["/opt/shop/bin/shop", "--port", "1"], None),
            ("/opt/shop/bin/shop", &["a b\u{202e}"], Some("a")),
            ("/opt/shop/bin/shop", &["\u{202e}evil"], None),
            ("/opt/shop/bin/shop", &[""], None),
        ] {
            assert_eq!(name(exe, words).as_deref(), expected, "{exe} {words:?}");
        }
    }

    #[test]
    fn java_programs_have_the_names_of_archives_and_classes() {
        let java = |words: &[&str]| {
            let words = [&["java"], words].concat();
            program_name("/usr/lib/jvm/21/bin/java", words.join("\0").as_bytes())
        };
        let of = |name: &str, version: Option<&str>, is_given| {
            Some(ProgramName { name: name.to_owned(), version: version.map(str::to_owned), is_given })
        };
        assert_eq!(
            java(&["-Xmx1g", "-jar", "/srv/shop-1.2.3-SNAPSHOT.jar"]),
            of("shop", Some("1.2.3-SNAPSHOT"), false)
        );
        assert_eq!(java(&["-cp", "a:b", "com.example.price.Main", "x"]), of("price", None, false));
        assert_eq!(
            java(&["-cp", "a:b", "org.apache.catalina.startup.Bootstrap"]),
            of("Bootstrap", None, false)
        );
        assert_eq!(java(&["-Dotel.service.name=basket", "-jar", "x.jar"]), of("basket", None, true));
        assert_eq!(
            java(&["-p", "mods", "-m", "com.greetings/com.greetings.Main"]),
            of("com.greetings", None, false)
        );
        assert_eq!(java(&["-jar"]), None);
        assert_eq!(java(&["-version"]), None);
    }
}
