//! Instruction classes, and the attribution of samples. The code is given as bytes from GNU as, with objdump's text
//! beside it.

#![allow(clippy::unwrap_used, reason = "a profile made wrongly is a bad test")]

use std::collections::BTreeMap;

use plumb_analyze::{Annotation, Doubt, Filter, Listing, Pattern, View, sampled};
use plumb_profile::*;

/// A loop with a load and a compare with memory.
const LOOP: &[u8] = &[
    0x48, 0x8b, 0x00, // 1000: mov (%rax),%rax
    0x49, 0x83, 0xc0, 0x01, // 1003: add $0x1,%r8
    0x48, 0x39, 0x0b, // 1007: cmp %rcx,(%rbx)
    0x75, 0x04, // 100a: jne 1010
    0x49, 0x83, 0xc1, 0x01, // 100c: add $0x1,%r9
    0x48, 0xff, 0xcf, // 1010: dec %rdi
    0x75, 0xeb, // 1013: jne 1000
    0xc3, // 1015: ret
];
const START: u64 = 0x1000;

/// A profile of one function at [`START`], `work` in /opt/app.
fn profile(event: &str, samples: &[(u64, u64)]) -> Profile {
    let mut profile = Profile::default();
    let name = profile.strings.add(event);
    let unit = profile.strings.add("ns");
    let event = profile.events.push(Event { name, unit });
    let empty = profile.strings.empty();
    let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
    let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
    let path = profile.strings.add("/opt/app");
    let dso =
        profile.dsos.add(Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma });
    let work = profile.strings.add("work");
    let function = Function {
        name: work,
        linkage_name: empty,
        dso: Some(dso),
        start: Some(Address(START)),
        source_file: empty,
        start_line: 0,
    };
    let function = profile.symbols.functions.add(function);
    for &(address, weight) in samples {
        let kind = FrameKind::User;
        let found = Found::Sampled;
        let frame = profile.frames.add(Frame {
            kind,
            dso: Some(dso),
            address: Address(address),
            is_return: false,
            found,
        });
        profile.symbols.set(frame, &[Line { function, file: empty, line: 0, inlined: false }]);
        let stack = profile.add_stack(&[frame]);
        profile.samples.push(Sample { time_ns: 0, thread, cpu: 0, event, stack, syscall: None, weight });
    }
    profile
}

fn annotate(profile: &Profile, code: &[u8]) -> Annotation {
    let view = View::new(profile, &Filter::default());
    let functions = sampled(&view, Some(&Pattern::parse("work").unwrap()), None);
    assert_eq!(functions.len(), 1, "{functions:?}");
    Annotation::new(
        &view,
        &functions[0],
        Listing::decode(Address(START), code, InstructionSet::X86_64),
        Vec::new(),
    )
}

/// Raw and adjusted weights by instruction.
fn weights(annotation: &Annotation) -> (Vec<u64>, Vec<f64>) {
    let rows = &annotation.rows;
    (rows.iter().map(|row| row.own.weight).collect(), rows.iter().map(|row| row.adjusted).collect())
}

#[test]
fn a_timers_samples_go_back_to_the_load() {
    let annotation = annotate(&profile("cpu-clock:u", &[(0x1003, 90), (0x1007, 10)]), LOOP);
    let (own, adjusted) = weights(&annotation);
    assert_eq!(own, [0, 90, 10, 0, 0, 0, 0, 0]);
    assert_eq!(adjusted, [90.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(annotation.is_adjusted);
    assert_eq!(annotation.share(90.0), 90.0);
}

#[test]
fn behind_a_compare_with_memory_and_its_jump_the_compare_was_waited_for() {
    let annotation = annotate(&profile("task-clock", &[(0x100c, 70)]), LOOP);
    assert_eq!(weights(&annotation).1[2], 70.0);
}

#[test]
fn where_ways_join_weight_is_divided_by_how_often_they_are_gone() {
    // After the compare's jump and after the `add`, whose block has a third of the samples per instruction.
    let annotation = annotate(&profile("cpu-clock", &[(0x1003, 12), (0x100c, 1), (0x1010, 80)]), LOOP);
    let (own, adjusted) = weights(&annotation);
    // (12 samples on four instructions against 1 on one: 3 to 1.)
    assert_eq!(adjusted[2], 1.0 + 60.0);
    assert_eq!(adjusted[4], 20.0);
    assert_eq!(own.iter().sum::<u64>() as f64, adjusted.iter().sum::<f64>());
}

/// A locked instruction followed by ten cheap ones.
const QUEUE: &[u8] = &[
    0xf0, 0x48, 0xff, 0x00, // 1000: lock incq (%rax)
    0x49, 0xff, 0xc0, 0x49, 0xff, 0xc0, 0x49, 0xff, 0xc0, 0x49, 0xff, 0xc0, 0x49, 0xff,
    0xc0, // 1004: five of inc %r8
    0x49, 0xff, 0xc0, 0x49, 0xff, 0xc0, 0x49, 0xff, 0xc0, 0x49, 0xff, 0xc0, 0x49, 0xff,
    0xc0, // 1013: five more
    0x48, 0xff, 0xcf, // 1022: dec %rdi
    0x75, 0xd9, // 1025: jne 1000
    0xc3, // 1027: ret
];

#[test]
fn what_only_waits_for_its_turn_is_charged_to_the_slow_one() {
    let annotation = annotate(&profile("cpu-clock", &[(0x1004, 85), (0x1019, 8), (0x1022, 7)]), QUEUE);
    let (_, adjusted) = weights(&annotation);
    assert_eq!((adjusted[0], annotation.rows[0].behind), (100.0, 15.0));
    // Also across the end of the loop.
    let annotation = annotate(&profile("cpu-clock", &[(0x1004, 85), (0x1000, 15)]), QUEUE);
    assert_eq!(annotation.rows[0].behind, 0.0, "what was waited for is the jump");
}

#[test]
fn a_chain_of_cheap_instructions_keeps_its_samples() {
    let chain: Vec<(u64, u64)> = (0..9).map(|index| (0x1007 + 3 * index, 10)).collect();
    let annotation = annotate(&profile("cpu-clock", &[&[(0x1004, 30)][..], &chain].concat()), QUEUE);
    let (_, adjusted) = weights(&annotation);
    // For the first few instructions it cannot be told.
    assert!(adjusted[0] <= 40.0, "{adjusted:?}");
    assert_eq!(adjusted[3..9], [10.0; 6]);
    // An instruction with less weight than the cheap ones does not hold them up either.
    let annotation = annotate(&profile("cpu-clock", &[(0x1004, 10), (0x1019, 50)]), QUEUE);
    assert_eq!((weights(&annotation).1[0], annotation.rows[0].behind), (10.0, 0.0));
}

#[test]
fn cheap_instructions_behind_a_jump_are_told_by_their_block() {
    let annotation = annotate(&profile("cpu-clock", &[(0x1010, 5), (0x1013, 50)]), LOOP);
    assert_eq!(annotation.rows[5].adjusted, 50.0);
    assert_eq!(annotation.rows[5].doubt, Some(Doubt::AfterBranch));
    let blocks = annotation.blocks();
    let block = &blocks[annotation.listing.instructions()[5].block];
    assert_eq!((block.first, block.last, block.after_branch), (5, 6, 50.0));
}

#[test]
fn what_came_before_the_function_or_from_a_call_stays() {
    // push %rbx; call 1006; mov %eax,%ebx; ret
    let code = [0x53, 0xe8, 0x00, 0x10, 0x00, 0x00, 0x89, 0xc3, 0xc3];
    let annotation = annotate(&profile("cpu-clock", &[(0x1000, 5), (0x1006, 50), (0x1008, 7)]), &code);
    assert_eq!(weights(&annotation).1, [5.0, 0.0, 57.0, 0.0]);
    let doubts: Vec<Option<Doubt>> = annotation.rows.iter().map(|row| row.doubt).collect();
    assert_eq!(doubts, [Some(Doubt::Entry), None, Some(Doubt::Returned), None]);
}

#[test]
fn string_instructions_keep_what_landed_on_them() {
    // rep movsb; ret
    let annotation = annotate(&profile("cpu-clock", &[(0x1000, 5), (0x1002, 50)]), &[0xf3, 0xa4, 0xc3]);
    assert_eq!(weights(&annotation).1, [55.0, 0.0]);
}

#[test]
fn what_is_no_timer_is_not_adjusted() {
    for event in ["cycles", "page-faults", "instructions:u", "syscalls:sys_enter_brk"] {
        let annotation = annotate(&profile(event, &[(0x1003, 90), (0x1007, 10)]), LOOP);
        let (own, adjusted) = weights(&annotation);
        assert!(!annotation.is_adjusted, "{event}");
        assert_eq!(own.iter().map(|&weight| weight as f64).collect::<Vec<_>>(), adjusted, "{event}");
    }
}

#[test]
fn samples_at_no_instruction_are_told() {
    let annotation = annotate(&profile("cpu-clock", &[(0x1003, 90), (0x1016, 10)]), LOOP);
    assert_eq!((annotation.own.weight, annotation.outside.weight), (100, 10));
}

#[test]
fn a_function_is_found_by_name_file_or_expression() {
    let profile = profile("cpu-clock", &[(0x1003, 90)]);
    let view = View::new(&profile, &Filter::default());
    let find = |function: &str, module: Option<&str>| {
        let module = module.map(|module| Pattern::parse(module).unwrap());
        sampled(&view, Some(&Pattern::parse(function).unwrap()), module.as_ref()).len()
    };
    assert_eq!(find("work", None), 1);
    assert_eq!(find("/^w/", Some("app")), 1);
    assert_eq!(find("work", Some("other")), 0);
    assert_eq!(find("wor", None), 0);
    assert_eq!(sampled(&view, None, None).len(), 1);
}

#[test]
fn an_inlined_function_leads_to_those_that_hold_it() {
    let mut profile = profile("cpu-clock", &[(0x1003, 90)]);
    let (frame, outlined) = (FrameId::from_index(0), profile.symbols.of(FrameId::from_index(0))[0]);
    let name = profile.strings.add("inner");
    let function = Function { name, start: None, ..profile.symbols.functions[outlined.function] };
    let function = profile.symbols.functions.add(function);
    profile.symbols.set(frame, &[Line { function, inlined: true, ..outlined }, outlined]);
    let view = View::new(&profile, &Filter::default());
    let found = sampled(&view, Some(&Pattern::parse("inner").unwrap()), None);
    assert_eq!((found[0].name.as_str(), &found[0].inlined[..]), ("work", &["inner".to_owned()][..]));
    let found = sampled(&view, Some(&Pattern::parse("work").unwrap()), None);
    assert_eq!((found.len(), found[0].inlined.len()), (1, 0));
}

#[test]
fn classes_are_told_from_the_encoding() {
    let classes: &[(&[u8], &[&str])] = &[
        (&[0x48, 0x8b, 0x44, 0x24, 0x08], &["load", "stack-slot"]), // mov 0x8(%rsp),%rax
        (&[0x48, 0x89, 0x45, 0xf8], &["store"]), // mov %rax,-0x8(%rbp), which points anywhere
        (&[0x8b, 0x05, 0x10, 0x00, 0x00, 0x00], &["load", "global"]), // mov 0x10(%rip),%eax
        (&[0x8b, 0x04, 0x8f], &["load", "indexed"]), // mov (%rdi,%rcx,4),%eax
        (&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], &["load", "thread-local"]), // mov %fs:0x28,%rax
        (&[0x48, 0x01, 0x07], &["load", "store"]), // add %rax,(%rdi)
        (&[0xf0, 0x48, 0xff, 0x07], &["lock"]),  // lock incq (%rdi)
        (&[0x48, 0x87, 0x07], &["lock"]),        // xchg %rax,(%rdi)
        (&[0x48, 0xf7, 0xf1], &["division"]),    // div %rcx
        (&[0xf2, 0x0f, 0x5e, 0xc1], &["division"]), // divsd %xmm1,%xmm0
        (&[0xf2, 0x0f, 0x51, 0xc0], &["square-root"]), // sqrtsd %xmm0,%xmm0
        (&[0x0f, 0x52, 0xc0], &["128-bit"]),     // rsqrtps %xmm0,%xmm0
        (&[0xf2, 0x0f, 0x58, 0xc1], &[]),        // addsd %xmm1,%xmm0
        (&[0xc5, 0xfd, 0x58, 0xc1], &["256-bit"]), // vaddpd %ymm1,%ymm0,%ymm0
        (&[0x62, 0xf1, 0xfd, 0x48, 0x58, 0xc1], &["512-bit"]), // vaddpd %zmm1,%zmm0,%zmm0
        (&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x8f], &["gather", "indexed", "256-bit"]), // vpgatherdd
        (&[0xf3, 0xa4], &["repeat"]),            // rep movsb
        (&[0x0f, 0x05], &["syscall"]),           // syscall
        (&[0x0f, 0xae, 0xf0], &["fence"]),       // mfence
        (&[0xe8, 0x00, 0x00, 0x00, 0x00], &["call"]), // call
        (&[0xff, 0x15, 0x10, 0x00, 0x00, 0x00], &["indirect-call", "load", "global"]), // call *0x10(%rip)
        (&[0xff, 0xe0], &["indirect-jump"]),     // jmp *%rax
        (&[0xeb, 0x00], &["jump"]),              // jmp
        (&[0x75, 0x00], &["branch"]),            // jne
        (&[0xc3], &["return"]),                  // ret
        (&[0x55], &["store"]),                   // push %rbp
        (&[0x5d], &["load"]),                    // pop %rbp
        (&[0x48, 0x8d, 0x04, 0x8f], &[]),        // lea (%rdi,%rcx,4),%rax
        (&[0x0f, 0x1f, 0x44, 0x00, 0x00], &[]),  // nopl 0x0(%rax,%rax,1)
    ];
    for (bytes, words) in classes {
        let listing = Listing::decode(Address(START), bytes, InstructionSet::X86_64);
        let text = listing.texts(&BTreeMap::new());
        assert_eq!(listing.instructions().len(), 1, "{text:?}");
        assert_eq!(listing.instructions()[0].class.words(), *words, "{text:?}");
    }
}

#[test]
fn a_frame_pointer_points_to_stack_slots() {
    // push %rbp; mov %rsp,%rbp; mov -0x8(%rbp),%rax
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x45, 0xf8];
    let listing = Listing::decode(Address(START), &code, InstructionSet::X86_64);
    assert_eq!(listing.instructions()[2].class.words(), ["load", "stack-slot"]);
}

#[test]
fn addresses_have_names_and_numbers_have_none() {
    // call 2000; mov 0x1ff4(%rip),%eax (3000); mov $0x2000,%edi; call *0x1fe9(%rip) (3000)
    let code = [
        0xe8, 0xfb, 0x0f, 0x00, 0x00, 0x8b, 0x05, 0xf5, 0x1f, 0x00, 0x00, 0xbf, 0x00, 0x20, 0x00, 0x00, 0xff,
        0x15, 0xea, 0x1f, 0x00, 0x00,
    ];
    let listing = Listing::decode(Address(START), &code, InstructionSet::X86_64);
    assert_eq!(listing.targets(), [Address(0x2000), Address(0x3000)]);
    let names =
        BTreeMap::from([(Address(0x2000), "malloc@plt".to_owned()), (Address(0x3000), "g_ready".to_owned())]);
    let texts = listing.texts(&names);
    assert!(texts[0].starts_with("call") && texts[0].ends_with(" malloc@plt"), "{texts:?}");
    assert!(texts[1].contains("g_ready(%rip)"), "{texts:?}");
    assert!(texts[2].contains("$0x2000"), "{texts:?}");
    assert!(texts[3].contains("*g_ready(%rip)"), "{texts:?}");
}

#[test]
fn bytes_that_are_no_code_are_told_one_by_one() {
    let listing = Listing::decode(Address(START), &[0x06, 0x07, 0x90, 0x0f], InstructionSet::X86_64);
    let texts = listing.texts(&BTreeMap::new());
    assert_eq!(texts, ["(bad)", "(bad)", "nop", "(bad)"]);
    assert_eq!(listing.end, Address(START + 4));
}
