// Names as they fit: C++ and Rust names are longer than any box.

/** Template arguments up to this long stay in a shortened name: `Eval<12>` says more than `Eval<…>`. */
const BRIEF = 6;

/**
 * Shorter forms of a name, the longest first: without the arguments of calls and the return type, then without
 * long template arguments, then the function's own name alone. `void ns::f<int, A<B> >(char*) const` becomes
 * `ns::f<int, A<B> >`, then `ns::f<…>`, then `f<…>`.
 */
export function shorter(name: string): string[] {
  // Addresses and markers have no parts.
  if (name.startsWith("[") || name.startsWith("0x")) return [name];
  const { safe, restore } = hideOperators(name);
  const bare = withoutReturnType(withoutParameters(safe));
  // In Rust, `<T as Trait>::f` opens with a bracket that says what it is about: kept.
  const brief = bare.startsWith("<") ? bare : withoutTemplateArguments(bare);
  return [...new Set([restore(bare), restore(brief), restore(ownName(brief))])];
}

/** The name without parameters, return type and long template arguments: for running text and tables. */
export function brief(name: string): string {
  const forms = shorter(name);
  const qualified = forms.filter((form) => form.includes("::"));
  return (qualified.length > 0 ? qualified : forms).at(-1) ?? name;
}

/** What comes after the last `::` outside of brackets. */
function ownName(name: string): string {
  let from = 0;
  let start = 0;
  const look = (to: number) => {
    const at = name.slice(from, to).lastIndexOf("::");
    if (at >= 0) start = from + at + 2;
  };
  brackets(name, (open, end) => {
    look(open);
    from = end;
  });
  look(name.length);
  // A closure has no name of its own: what it is in says more.
  const own = name.slice(start);
  return own === "" || own.startsWith("{") ? name : own;
}

/** Puts a letter that is no sign in place of operators whose signs look like brackets, or that hold a space. */
function hideOperators(name: string): { safe: string; restore: (text: string) => string } {
  const operators: string[] = [];
  const safe = name.replace(/\boperator(\s*(\(\)|<=>|->\*?|<<=?|>>=?|<=?|>=?)| (new|delete)(\[\])?|""\s*)/g, (text) => {
    operators.push(text);
    return `\u0001${operators.length - 1}\u0001`;
  });
  return { safe, restore: (text) => text.replace(/\u0001(\d+)\u0001/g, (_, i: string) => operators[Number(i)] ?? "") };
}

const OPEN = "(<[{";
const CLOSE = ")>]}";

/** Calls `each` with the outermost bracketed parts: where they open, and one past where they close. */
function brackets(name: string, each: (open: number, end: number) => void): void {
  let depth = 0;
  let open = 0;
  for (let i = 0; i < name.length; i++) {
    if (OPEN.includes(name[i])) {
      if (depth++ === 0) open = i;
    } else if (CLOSE.includes(name[i]) && depth > 0 && !(name[i] === ">" && name[i - 1] === "-")) {
      if (--depth === 0) each(open, i + 1);
    }
  }
}

/** A parameter list is the last outermost parenthesis that is no part of the name itself. */
function withoutParameters(name: string): string {
  let cut = 0;
  brackets(name, (open, end) => {
    if (name[open] === "(" && !name.startsWith("(anonymous namespace)", open) && end > open) {
      // What is in a function is no parameter of it: `run()::{lambda()#1}`.
      cut = name.startsWith("::", end) ? 0 : open;
    }
  });
  return cut > 0 ? name.slice(0, cut) : name;
}

/** A template's demangled name starts with its return type, which ends at the last space outside of brackets. */
function withoutReturnType(name: string): string {
  let space = -1;
  let from = 0;
  const look = (to: number) => {
    const at = name.slice(from, to).lastIndexOf(" ");
    if (at >= 0) space = from + at;
  };
  brackets(name, (open, end) => {
    look(open);
    from = end;
  });
  look(name.length);
  const rest = name.slice(space + 1).replace(/^[*&]+/, "");
  return /^[\w~:$(\u0001]/.test(rest) ? rest : name;
}

function withoutTemplateArguments(name: string): string {
  let out = "";
  let from = 0;
  brackets(name, (open, end) => {
    out += name.slice(from, open);
    const part = name.slice(open, end);
    if (name[open] === "<") out += part.length - 2 <= BRIEF ? part : "<…>";
    else if (name[open] === "{") out += part.startsWith("{lambda") ? "{lambda}" : part;
    else out += part;
    from = end;
  });
  return out + name.slice(from);
}

/** As much of `text` as fits in `width`, with an ellipsis if it is cut; empty if not even three letters fit. */
export function fit(text: string, width: number, measure: (character: string) => number): string {
  let used = 0;
  let cut = 0;
  const dots = measure("…");
  for (let i = 0; i < text.length; i++) {
    used += measure(text[i]);
    if (used + dots <= width) cut = i + 1;
    // What is cut inside of a `<…>` needs no second ellipsis.
    if (used > width) return cut < 3 ? "" : `${text.slice(0, cut).replace(/<?…?$/, "")}…`;
  }
  return text;
}
