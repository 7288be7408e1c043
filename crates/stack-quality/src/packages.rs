//! The command that installs the debug symbols of a system file: from its package, or by debuginfod.
//!
//! Invariant: only if the recorded file is the one installed here, belongs to a package, and has no debug file yet.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use plumb_profile::BuildId;
use plumb_symbolize::{Options, build_id_of, debug_file_path};

/// The command, if there is one, by path and build ID.
type Commands = HashMap<(String, BuildId), Option<String>>;

/// Commands found so far: package managers take a while.
static KNOWN: LazyLock<Mutex<Commands>> = LazyLock::new(Mutex::default);

/// Access to the package manager and the system's description.
trait System {
    /// The output of a command; empty if it fails.
    fn output(&self, program: &str, args: &[&str]) -> String;
    /// The content of a text file; empty if it doesn't exist.
    fn read(&self, path: &str) -> String;
    /// The Debian package that a file belongs to.
    fn debian_owner(&self, path: &str) -> Option<String>;
    /// Whether one of apt's archives has a package of this name, which ends with `-dbgsym` or `-dbg`.
    fn has_debug_package(&self, name: &str) -> bool;
}

/// The command for the file at `path` with this build ID.
pub fn debug_symbols(path: &str, build_id: Option<&BuildId>) -> Option<String> {
    let build_id = build_id?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || {
        let is_here = build_id_of(Path::new(path)).as_ref() == Some(build_id);
        let roots = Options::default().debug_roots;
        let has_debug_file = roots.iter().any(|root| debug_file_path(root, build_id).exists());
        if is_here && !has_debug_file { command(&Here, path) } else { None }
    };
    known.entry((path.to_owned(), build_id.clone())).or_insert_with(ask).clone()
}

fn command(system: &dyn System, path: &str) -> Option<String> {
    let release = system.read("/etc/os-release");
    let field = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let names = format!("{} {}", field("ID"), field("ID_LIKE"));
    let is = |name: &str| names.split(' ').any(|one| one == name);
    let by_server = |url: &str| format!("DEBUGINFOD_URLS={url} plumb record --debuginfod ...");
    let one_line =
        |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains('\n'));
    if is("debian") {
        let package = system.debian_owner(path)?;
        return Some(of_debian(system, &package, &field("VERSION_CODENAME"), is("ubuntu")));
    }
    if is("alpine") {
        let text = system.output("apk", &["info", "--who-owns", path]);
        let (_, package) = text.trim().rsplit_once(" is owned by ")?;
        let name = package.rsplitn(3, '-').nth(2)?;
        return Some(format!("apk add {name}-dbg"));
    }
    if is("arch") {
        let package = one_line(system.output("pacman", &["--query", "--quiet", "--owns", path]));
        return package.map(|_| by_server("https://debuginfod.archlinux.org"));
    }
    let package = one_line(system.output("rpm", &["--query", "--file", "--queryformat", "%{NAME}", path]))?;
    match is("suse") || is("opensuse") {
        true => Some(format!("zypper install {package}-debuginfo")),
        false if is("fedora") || is("rhel") => Some(format!("dnf debuginfo-install {package}")),
        false => None,
    }
}

/// Debug symbols are in a package next to the file's own, possibly in another archive.
fn of_debian(system: &dyn System, package: &str, release: &str, is_ubuntu: bool) -> String {
    let names = ["dbgsym", "dbg"].map(|ending| format!("{package}-{ending}"));
    if let Some(name) = names.iter().find(|name| system.has_debug_package(name)) {
        return format!("apt install {name}");
    }
    match is_ubuntu {
        true => "DEBUGINFOD_URLS=https://debuginfod.ubuntu.com plumb record --debuginfod ...".to_owned(),
        false => format!(
            "apt install {} (first add the suite {release}-debug of debian-debug to apt's sources: it is in none)",
            names[0]
        ),
    }
}

/// This machine.
struct Here;

impl System for Here {
    fn output(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(args).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success());
        output.map_or_else(String::new, |output| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    fn debian_owner(&self, path: &str) -> Option<String> {
        owner_in(Path::new("/var/lib/dpkg/info"), path)
    }

    /// Asks apt once for all names: in a container image, which has no cache of apt's, an answer takes a second.
    fn has_debug_package(&self, name: &str) -> bool {
        static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
            let names = Here.output("apt-cache", &["pkgnames"]);
            names
                .lines()
                .filter(|name| name.ends_with("-dbgsym") || name.ends_with("-dbg"))
                .map(str::to_owned)
                .collect()
        });
        NAMES.contains(name)
    }
}

/// The package whose file list in `folder` contains a file: `zlib1g` for `zlib1g:amd64.list`. Lists of old packages have no `/usr` before `/lib`.
fn owner_in(folder: &Path, path: &str) -> Option<String> {
    let old = path.strip_prefix("/usr").filter(|rest| rest.starts_with('/'));
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else { continue };
        let list = std::fs::read(entry.path()).unwrap_or_default();
        let is_it = |line: &[u8]| line == path.as_bytes() || old.is_some_and(|old| line == old.as_bytes());
        if list.split(|&byte| byte == b'\n').any(is_it) {
            return Some(package.split(':').next().unwrap_or(package).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system with this description and package manager output.
    struct Other(&'static str, &'static str);

    impl System for Other {
        fn output(&self, _: &str, _: &[&str]) -> String {
            self.1.to_owned()
        }

        fn read(&self, _: &str) -> String {
            self.0.to_owned()
        }

        fn debian_owner(&self, path: &str) -> Option<String> {
            path.contains("libz").then(|| "zlib1g".to_owned())
        }

        fn has_debug_package(&self, name: &str) -> bool {
            self.1.lines().any(|line| line == name)
        }
    }

    const DEBIAN: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";

    #[test]
    fn each_distribution_has_its_command() {
        let path = "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13";
        for (release, printed, expected) in [
            (DEBIAN, "zlib1g-dbgsym\nzlib1g-dbg\n", "apt install zlib1g-dbgsym"),
            (DEBIAN, "zlib1g-dbg\n", "apt install zlib1g-dbg"),
            (
                DEBIAN,
                "",
                "apt install zlib1g-dbgsym (first add the suite bookworm-debug of debian-debug to apt's sources: it is in none)",
            ),
            (
                "ID=ubuntu\nID_LIKE=debian\n",
                "",
                "DEBUGINFOD_URLS=https://debuginfod.ubuntu.com plumb record --debuginfod ...",
            ),
            ("ID=fedora\n", "zlib-ng-compat", "dnf debuginfo-install zlib-ng-compat"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "zlib", "dnf debuginfo-install zlib"),
            ("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n", "libz1", "zypper install libz1-debuginfo"),
            ("ID=alpine\n", "/lib/libz.so.1.3.1 is owned by zlib-1.3.1-r2\n", "apk add zlib-dbg"),
            (
                "ID=arch\n",
                "zlib\n",
                "DEBUGINFOD_URLS=https://debuginfod.archlinux.org plumb record --debuginfod ...",
            ),
        ] {
            assert_eq!(command(&Other(release, printed), path).as_deref(), Some(expected), "{release}");
        }
    }

    #[test]
    fn a_file_of_no_package_has_none() {
        for release in [DEBIAN, "ID=fedora\n", "ID=alpine\n", "ID=arch\n", "ID=unheard-of\n", ""] {
            assert_eq!(command(&Other(release, ""), "/opt/app"), None, "{release}");
        }
        assert_eq!(debug_symbols("/opt/app", BuildId::new(&[1, 2, 3, 4]).as_ref()), None);
    }

    #[test]
    fn the_owner_is_in_the_lists_also_without_usr() {
        let folder = std::env::temp_dir().join(format!("plumb-packages-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).expect("it can be written");
        };
        write("zlib1g:amd64.list", "/.\n/lib\n/lib/x/libz.so.1.2.13\n");
        write("bash.list", "/bin/bash\n/usr/share/bash\n");
        let owner = |path: &str| owner_in(&folder, path);
        assert_eq!(owner("/usr/lib/x/libz.so.1.2.13").as_deref(), Some("zlib1g"));
        assert_eq!(owner("/bin/bash").as_deref(), Some("bash"));
        assert_eq!((owner("/usr/lib/x/libz.so.1"), owner("/opt/app")), (None, None));
        std::fs::remove_dir_all(&folder).expect("it was made above");
    }
}
