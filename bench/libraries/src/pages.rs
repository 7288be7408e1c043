//! What the `parquet` crate alone does with a file that claims more than it holds.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::Int64Type;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::Outcome;

/// Values of the one column; 1,000 different ones make a dictionary.
fn table(values: &[i64]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let schema = Arc::new(parse_message_type("message table { required int64 number; }")?);
    let level = ZstdLevel::try_new(1)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    if let Some(mut column) = group.next_column()? {
        column.typed::<Int64Type>().write_batch(values, None, None)?;
        column.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

/// A number as Thrift's compact protocol has it.
fn varint(number: i64) -> Vec<u8> {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    let mut bytes = Vec::new();
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes
}

/// The same table with another head of its dictionary's page: `(size unpacked, packed, values)`, and these packed bytes.
fn with_dictionary(unpacked: i64, values: i64, packed: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let table = table(&(0..1000).collect::<Vec<_>>())?;
    let file = SerializedFileReader::new(Bytes::from(table.clone()))?;
    let column = file.metadata().row_group(0).column(0);
    let start = column.dictionary_page_offset().ok_or("no dictionary")?;
    let data = column.data_page_offset() as usize;
    // type 2, sizes, dictionary header { values, PLAIN }.
    let head: Vec<u8> = [
        &[0x15, 4, 0x15][..],
        &varint(unpacked),
        &[0x15],
        &varint(packed.len() as i64),
        &[0x4c, 0x15],
        &varint(values),
        &[0x15, 0, 0, 0],
    ]
    .concat();
    let page = [&head, packed].concat();
    // The page goes where the old one was, and the column is said to begin there; what follows moves.
    let moved = page.len() as i64 - (data as i64 - start);
    let length = u32::from_le_bytes(table[table.len() - 8..][..4].try_into()?) as usize;
    let footer = &table[table.len() - 8 - length..table.len() - 8];
    let replace = |footer: &[u8], from: i64, to: i64| -> Vec<u8> {
        let (from, to) = (varint(from), varint(to));
        let mut out = Vec::new();
        let mut at = 0;
        while at < footer.len() {
            if footer[at..].starts_with(&from) {
                out.extend(&to);
                at += from.len();
            } else {
                out.push(footer[at]);
                at += 1;
            }
        }
        out
    };
    let footer = replace(footer, column.data_page_offset(), column.data_page_offset() + moved);
    let footer = replace(&footer, column.compressed_size(), column.compressed_size() + moved);
    let rest = &table[data..table.len() - 8 - length];
    let mut out = [&table[..start as usize], &page, rest, &footer].concat();
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend(b"PAR1");
    Ok(out)
}

/// A footer that says that it has two thousand million row groups.
fn with_groups() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    // version 2, an empty schema of one root, no rows, a list of structures that is that long.
    let mut footer = vec![0x15, 4, 0x19, 0x1c, 0x48, 4];
    footer.extend(b"root");
    footer.extend([0x15, 0, 0, 0x16, 0, 0x19, 0xfc]);
    footer.extend([0xff, 0xff, 0xff, 0xff, 0x07, 0]);
    let mut out = b"PAR1".to_vec();
    out.extend(&footer);
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend(b"PAR1");
    Ok(out)
}

/// Reads a table that makes that claim.
pub fn read(claim: &str) -> Outcome {
    let zeros = |count: usize| parquet_zstd(&vec![0; count]);
    let table = match claim {
        "nothing" => table(&(0..1000).collect::<Vec<_>>())?,
        "groups" => with_groups()?,
        "entries" => with_dictionary(8000, i64::from(i32::MAX), &zeros(8000)?)?,
        "bomb" => with_dictionary(2_000_000_000, 1000, &zeros(2_000_000_000)?)?,
        "size" => with_dictionary(i64::from(i32::MAX), 1000, &zeros(8000)?)?,
        _ => return Err("nothing, groups, entries, bomb or size".into()),
    };
    println!("{} bytes", table.len());
    let before = peak();
    let outcome = std::panic::catch_unwind(|| decode(table));
    let said = match outcome {
        Ok(Ok(count)) => format!("{count} values"),
        Ok(Err(error)) => format!("error: {error}"),
        Err(_) => "panic".to_owned(),
    };
    println!("{claim}: {said}; {} MB more at the peak", (peak().saturating_sub(before)) / 1024);
    Ok(())
}

fn decode(table: Vec<u8>) -> Result<usize, String> {
    let said = |error: parquet::errors::ParquetError| error.to_string();
    let file = SerializedFileReader::new(Bytes::from(table)).map_err(said)?;
    let mut values = Vec::new();
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(said)?;
        let mut reader = get_typed_column_reader::<Int64Type>(group.get_column_reader(0).map_err(said)?);
        reader.read_records(1000, None, None, &mut values).map_err(said)?;
    }
    Ok(values.len())
}

/// Packed as the pages of a table are.
fn parquet_zstd(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    Ok(zstd::bulk::compress(bytes, 1)?)
}

/// The most memory that the process had, in KiB; reset by writing to `clear_refs`.
pub fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let most = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0);
    // From here on the peak is that of what comes.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    most
}
