//! A perf.data by hand: what perf writes for two events, with mappings, a command, a fork and its end, call chains, registers and copies of
//! stacks.

/// IDENTIFIER, IP, TID, TIME, PERIOD, CALLCHAIN, REGS_USER, STACK_USER of `perf_event_sample_format`.
const FORMAT: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 5 | 1 << 12 | 1 << 13;

const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const CALLCHAIN_DEFERRED: u32 = 22;
const FINISHED_ROUND: u32 = 68;

/// `PERF_CONTEXT_USER` and `PERF_CONTEXT_USER_DEFERRED`.
const USER: u64 = u64::MAX - 511;
const DEFERRED: u64 = u64::MAX - 639;

/// The release is another one than that of the kernel that runs, whose symbols would be read each time.
const FEATURES: [(u32, &str); 3] = [(3, "host\0\0\0\0"), (4, "9.99.9\0\0"), (6, "x86_64\0\0")];

/// The file.
pub fn file() -> Vec<u8> {
    let mut data = Vec::new();
    let tail = |id: u64, time: u64| [words(&[7 << 32 | 7, time, id])].concat();
    data.extend(record(COMM, 1 << 13, &[&halves(&[7, 7])[..], b"work er\0", &tail(100, 1)].concat()));
    for (start, path) in [(0x1000_u64, &b"/bin/true\0\0\0\0\0\0\0"[..]), (0x7000_0000, b"/no/such/lib.so\0")]
    {
        let body = [
            &halves(&[7, 7])[..],
            &words(&[start, 0x1_0000, 0]),
            &halves(&[8, 1, 77, 0, 0, 0, 5, 2]),
            path,
            &tail(100, 2),
        ];
        data.extend(record(MMAP2, 2, &body.concat()));
    }
    data.extend(record(FORK, 0, &[&halves(&[8, 7, 8, 7])[..], &words(&[3]), &tail(101, 3)].concat()));
    for number in 0..12 {
        data.extend(record(SAMPLE, 2, &sample(100 + number % 2, 10 + 10 * number)));
        if number % 4 == 3 {
            let deferred = words(&[10 + 10 * number, 3, USER, 0x1010, 0x1020]);
            data.extend(record(CALLCHAIN_DEFERRED, 2, &[deferred, tail(101, 11 + 10 * number)].concat()));
        }
        if number % 5 == 4 {
            data.extend(record(FINISHED_ROUND, 0, &[]));
        }
    }
    data.extend(record(EXIT, 0, &[&halves(&[8, 7, 8, 7])[..], &words(&[200]), &tail(101, 200)].concat()));
    let mut file = b"PERFILE2".to_vec();
    let attrs = 104 + 16;
    let begin = attrs + 2 * 144;
    file.extend(words(&[104, 144, attrs, 2 * 144, begin, data.len() as u64, 0, 0]));
    file.extend(words(&[FEATURES.iter().fold(0, |bits, (feature, _)| bits | 1 << feature), 0, 0, 0]));
    file.extend(words(&[100, 101]));
    for (number, kind) in [(0, 0_u64), (1, 2)] {
        let mut attr = [0_u8; 128];
        attr[..4].copy_from_slice(&1_u32.to_le_bytes());
        attr[4..8].copy_from_slice(&128_u32.to_le_bytes());
        attr[8..16].copy_from_slice(&kind.to_le_bytes());
        attr[16..24].copy_from_slice(&4000_u64.to_le_bytes());
        attr[24..32].copy_from_slice(&FORMAT.to_le_bytes());
        // SAMPLE_ID_ALL and by frequency.
        attr[40..48].copy_from_slice(&(1_u64 << 18 | 1 << 10).to_le_bytes());
        // The instruction pointer, the stack pointer and the frame pointer of x86_64.
        attr[80..88].copy_from_slice(&(1_u64 << 8 | 1 << 7 | 1 << 6).to_le_bytes());
        file.extend(attr);
        file.extend(words(&[104 + 8 * number, 8]));
    }
    file.extend(data);
    let mut at = file.len() as u64 + 16 * FEATURES.len() as u64;
    for (_, text) in FEATURES {
        file.extend(words(&[at, text.len() as u64 + 4]));
        at += text.len() as u64 + 4;
    }
    for (_, text) in FEATURES {
        file.extend(halves(&[text.len() as u32]));
        file.extend(text.as_bytes());
    }
    file
}

fn sample(id: u64, time: u64) -> Vec<u8> {
    // Of every other sample the user's part comes later, or not at all.
    let user = if time.is_multiple_of(20) { [DEFERRED, time, USER] } else { [USER, 0x1010, 0x1020] };
    let kernel_and_user = [&[u64::MAX - 127, 0xffff_ffff_8100_0000][..], &user].concat();
    let stack: Vec<u8> = (0..64_u64).flat_map(|word| (0x1000 + 16 * word).to_le_bytes()).collect();
    let mut body = words(&[id, 0x1010, 7 << 32 | 7, time, 1_001_001, kernel_and_user.len() as u64]);
    body.extend(words(&kernel_and_user));
    body.extend(words(&[2, 0x7fff_0040, 0x7fff_0000, 0x1010, stack.len() as u64]));
    body.extend(&stack);
    body.extend(words(&[stack.len() as u64]));
    body
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = body.len() as u16 + 8;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
