//! Pages that the parquet crate's own writer made, and pages forged from them.

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// The pages of a file with these texts.
fn pages(texts: &[String]) -> (Vec<Page>, SerializedFileReader<bytes::Bytes>) {
    let schema = parse_message_type("message m { required binary text (STRING); }").expect("a schema");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BYTE_ARRAY)
        .build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let mut column = group.next_column().expect("a column").expect("a column");
    let values: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(&**text)).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None).expect("values");
    column.close().expect("a column");
    group.close().expect("a group");
    let bytes = writer.into_inner().expect("a file");
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a file");
    let all = reader.get_row_group(0).expect("a group").get_column_page_reader(0).expect("pages");
    (all.map(|page| page.expect("a page")).collect(), reader)
}

/// Returns the sizes of texts by page, as the check measures them.
fn measured(texts: &[String]) -> Vec<u64> {
    let (pages, _) = pages(texts);
    pages.iter().map(|page| decoded_bytes(page.buffer(), page.num_values().into()).expect("a page")).collect()
}

#[test]
fn the_size_of_texts_is_known_before_they_are_decoded() {
    let mut state = 7_u32;
    let mut random = |most: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % most
    };
    for count in [1, 2, 31, 32, 33, 129, 1000, 3000] {
        for longest in [1, 2, 40, 5000] {
            let text = |length: u32| format!("{}{length}", "common".repeat(length as usize / 6));
            let texts: Vec<String> = (0..count).map(|_| text(random(longest))).collect();
            let all: usize = texts.iter().map(String::len).sum();
            assert_eq!(measured(&texts).iter().sum::<u64>(), all as u64, "{count} texts of {longest}");
        }
    }
    assert_eq!(measured(&[String::new()]), [0]);
}

#[test]
fn a_page_of_many_long_texts_is_refused_before_it_is_decoded() {
    // 2,000 texts, each the one before and a letter: 2 MB in a page of some kB.
    let texts: Vec<String> = (0..2000).map(|length| "x".repeat(length)).collect();
    let (_, reader) = pages(&texts);
    let read = |bytes: u64| {
        let group = reader.get_row_group(0).expect("a group");
        let descriptor = group.metadata().schema_descr().column(0);
        let inner = group.get_column_page_reader(0).expect("pages");
        let mut pages = CheckedPages::new(inner, &descriptor, PageBudget::new(bytes));
        pages.next().expect("a page").map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read(1_999_000), Ok(()));
    assert!(read(1_998_999).expect_err("too many").contains("more than its rows can need"));
}

#[test]
fn a_page_with_other_streams_of_lengths_is_refused() {
    let texts: Vec<String> = (0..300).map(|number| format!("name{number}")).collect();
    let (pages, _) = pages(&texts);
    let page = pages[0].buffer();
    assert!(decoded_bytes(page, 300).is_some());
    assert!(decoded_bytes(page, 299).is_none() && decoded_bytes(page, 1 << 31).is_none());
    for end in 0..page.len() {
        assert!(decoded_bytes(&page[..end], 300).is_none(), "cut off at {end}");
    }
    // 2^31 lengths, all 0, in a few bytes: blocks of 2^31 values whose differences have 0 bits.
    let number = |bytes: &mut Vec<u8>, mut value: u64| {
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    let mut bomb = Vec::new();
    for _ in 0..2 {
        [1 << 31, 1, 1 << 31, 0, 0, 0].into_iter().for_each(|value| number(&mut bomb, value));
    }
    assert!(decoded_bytes(&bomb, 1 << 31).is_none());
    // A changed bit is an error or another size, but never more than the page could have.
    for bit in 0..page.len() * 8 {
        let mut changed = page.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let size = decoded_bytes(&changed, 300).unwrap_or(0);
        assert!(size <= 300 * page.len() as u64, "{size}");
    }
}
