//! Call trees in both directions and around a function.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use plumb_analyze::{Call, Cost, Filter, Pattern, Tree, TreeOptions, View};
use plumb_fixtures::Made;
use plumb_profile::Profile;

/// The tree as text: one indented line per node, with its total and its own weight.
fn text(view: &View<'_>, tree: &Tree) -> String {
    fn add(view: &View<'_>, tree: &Tree, node: usize, depth: usize, text: &mut String) {
        let node = &tree.nodes[node];
        let name = match node.call {
            Call::Comm(thread) => {
                format!("<{}>", view.profile().strings.get(view.profile().threads[thread].comm))
            }
            Call::Frame { frame, inlined: true } => format!("{} (inlined)", view.frame(frame).name),
            Call::Frame { frame, .. } => view.frame(frame).name.to_string(),
        };
        let indent = " ".repeat(depth);
        text.push_str(&format!("{indent}{name} {} {}\n", node.total.weight, node.own.weight));
        if node.below.rows > 0 {
            text.push_str(&format!("{indent} {} more {}\n", node.below.rows, node.below.own.weight));
        }
        node.children.iter().for_each(|&child| add(view, tree, child, depth + 1, text));
    }
    let mut out = String::new();
    tree.roots.iter().for_each(|&root| add(view, tree, root, 0, &mut out));
    out
}

/// Checks that each node's total is the sum of its own cost, its children and what was cut off.
fn assert_adds_up(tree: &Tree) {
    for node in &tree.nodes {
        let below: Cost = node.children.iter().map(|&child| tree.nodes[child].total).sum();
        assert_eq!(node.total.weight, node.own.weight + below.weight + node.below.own.weight);
        assert_eq!(node.total.samples, node.own.samples + below.samples + node.below.own.samples);
    }
}

fn check(profile: &Profile, make: impl Fn(&View<'_>) -> Tree, expected: &str) {
    let view = View::new(profile, &Filter::default());
    let tree = make(&view);
    assert_adds_up(&tree);
    let expected: String = expected.lines().map(|line| format!("{}\n", line.replace('.', " "))).collect();
    assert_eq!(text(&view, &tree), expected);
}

fn at(min_percent: f64) -> TreeOptions {
    TreeOptions::above(min_percent)
}

fn called(name: &str) -> Pattern {
    Pattern::parse(name).unwrap()
}

fn example() -> Made {
    let mut made = Made::new();
    made.sample("a", "main@app;load@app;read@libc;sys_read@k", 10)
        .sample("a", "main@app;save@app;write@libc", 20)
        .sample("a", "main@app;load@app;read@libc", 5)
        .sample("a", "start@libc;save+pack@app", 1);
    made
}

#[test]
fn top_down_merges_equal_paths() {
    let mut made = Made::new();
    made.sample("a", "main@app;load@app;read@libc", 10)
        .sample("a", "main@app;save+pack@app;write@libc", 20)
        .sample("a", "main@app;load@app", 5)
        .sample("a", "start@libc;save@app", 1);
    check(
        &made.profile,
        |view| Tree::top_down(view, at(0.0)),
        "main 35 0\n.save 20 0\n..pack (inlined) 20 0\n...write 20 20\n.load 15 5\n..read 10 10\nstart 1 0\n.save 1 1",
    );
}

#[test]
fn top_down_begins_with_names_where_there_are_several() {
    let mut made = Made::new();
    made.sample("a/1", "main@app", 1).sample("b/2", "main@app;f@app", 3).sample("a/3", "main@app", 1);
    check(
        &made.profile,
        |view| Tree::top_down(view, at(0.0)),
        "<b> 3 0\n.main 3 0\n..f 3 3\n<a> 2 0\n.main 2 2",
    );
}

#[test]
fn bottom_up_begins_where_time_was_spent() {
    let mut made = Made::new();
    made.sample("a", "main@app;load@app;read@libc", 10)
        .sample("a", "main@app;save@app;read@libc", 20)
        .sample("a", "main@app;load@app", 5);
    check(
        &made.profile,
        |view| Tree::bottom_up(view, at(0.0)),
        "read 30 0\n.save 20 0\n..main 20 20\n.load 10 0\n..main 10 10\nload 5 0\n.main 5 5",
    );
}

#[test]
fn small_branches_are_summed_up() {
    let mut made = Made::new();
    for (name, weight) in [("big", 90), ("b", 4), ("c", 3), ("d", 3)] {
        made.sample("a", &format!("main@app;{name}@app"), weight);
    }
    check(&made.profile, |view| Tree::top_down(view, at(5.0)), "main 100 0\n.3 more 10\n.big 90 90");
}

#[test]
fn callers_of_a_recursive_function_are_those_of_its_outermost_call() {
    let mut made = Made::new();
    made.sample("a", "main@app;walk(int)@app;walk(int)@app;leaf@app", 4)
        .sample("a", "main@app;walk(int)@app;other@app;walk(int)@app", 2)
        .sample("a", "init@app;walk(int)@app", 1)
        .sample("a", "main@app;leaf@app", 100);
    check(
        &made.profile,
        |view| Tree::callers(view, &called("walk"), at(0.0)),
        "walk(int) 7 0\n.main 6 6\n.init 1 1",
    );
    check(
        &made.profile,
        |view| Tree::callees(view, &called("walk"), at(0.0)),
        "walk(int) 7 1\n.leaf 4 4\n.other 2 0\n..walk(int) 2 2",
    );
}

#[test]
fn several_functions_can_be_the_middle() {
    let made = example();
    check(
        &made.profile,
        |view| Tree::callers(view, &called("/^(read|write)$/"), at(0.0)),
        "write 35 0\n.save 20 0\n..main 20 20\n.load 15 0\n..main 15 15",
    );
}

#[test]
fn nothing_is_around_what_is_not_there() {
    let made = example();
    let view = View::new(&made.profile, &Filter::default());
    assert!(Tree::callers(&view, &called("absent"), at(0.0)).nodes.is_empty());
    assert!(Tree::callees(&view, &called("absent"), at(0.0)).nodes.is_empty());
    assert!(Tree::top_down(&View::new(&Profile::default(), &Filter::default()), at(0.0)).nodes.is_empty());
}

#[test]
fn deep_recursion_needs_no_deep_call_stack() {
    let mut made = Made::new();
    let deep = vec!["f@app;g@app"; 50_000].join(";");
    made.sample("a", &deep, 1);
    let view = View::new(&made.profile, &Filter::default());
    for tree in [Tree::top_down(&view, at(0.0)), Tree::bottom_up(&view, at(0.0))] {
        assert_eq!(tree.nodes.len(), 100_000);
    }
    assert_eq!(Tree::callees(&view, &called("f"), at(0.0)).nodes.len(), 100_000);
}

#[test]
fn functions_of_a_program_stand_for_the_loop_that_ran_them_or_it_for_them() {
    let mut made = Made::new();
    // Two iterations of the loop, the inner one with two functions; and one of which nothing is known.
    let stack = "_start@py3;loop@py3;main@py;sorted@py3;loop@py3;helper@py;key@py;sqrt@libm";
    made.sample("py", stack, 3).sample("py", "_start@py3;loop@py3", 1);
    let check = |native, expected: [&str; 2]| {
        let filter = Filter { native, ..Filter::default() };
        let view = View::new(&made.profile, &filter);
        let names = |node| view.stack(node).map(|frame| frame.name.to_string()).collect::<Vec<_>>().join(" ");
        let stacks: Vec<_> = view.samples().map(|sample| names(sample.node)).collect();
        assert_eq!(stacks, expected);
        let kept = view.to_profile();
        let names = |stack| {
            let lines = kept.frames_of(stack).flat_map(|frame| kept.symbols.of(frame));
            lines.map(|line| kept.strings.get(kept.symbols.functions[line.function].name)).collect::<Vec<_>>()
        };
        let stacks: Vec<_> = kept.samples.iter().map(|sample| names(sample.stack).join(" ")).collect();
        assert_eq!(stacks, expected);
    };
    check(false, ["sqrt key helper sorted main _start", "loop _start"]);
    check(true, ["sqrt loop sorted loop _start", "loop _start"]);
    // Hidden frames are not found either.
    let filter = Filter { symbols: vec![called("loop")], ..Filter::default() };
    assert_eq!(View::new(&made.profile, &filter).part().weight, 1);
}
