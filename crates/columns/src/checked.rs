//! Checks decompressed pages before they reach their decoder.
//!
//! The decoder of DELTA_BYTE_ARRAY (parquet 60.1) allocates as many lengths as the page claims, and copies the whole prefix for each value: a
//! page of 20 kB may hold 20 GB of text. No other decoder allocates by numbers inside a page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

use crate::delta::decoded_bytes;

/// The memory that decoding may still take, shared by the readers of several column chunks.
#[derive(Clone, Debug)]
pub struct PageBudget(Arc<AtomicU64>);

impl PageBudget {
    /// A budget in bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(bytes.into()))
    }

    /// Takes `bytes` out of the budget.
    ///
    /// # Errors
    /// There are fewer left.
    pub fn charge(&self, bytes: u64) -> Result<(), &'static str> {
        let charged =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        charged.map(drop).map_err(|_| "it unpacks to more than its rows can need")
    }
}

/// A page reader whose pages of DELTA_BYTE_ARRAY are well-formed and within a budget.
pub struct CheckedPages {
    pages: Box<dyn PageReader>,
    /// Whether the column has no levels, so that a page has its values only.
    is_flat: bool,
    budget: PageBudget,
}

impl CheckedPages {
    /// Wraps the pages of a chunk of `column`, whose headers were checked before.
    pub fn new(pages: Box<dyn PageReader>, column: &ColumnDescriptor, budget: PageBudget) -> Self {
        Self { pages, is_flat: (column.max_def_level(), column.max_rep_level()) == (0, 0), budget }
    }

    fn check(&self, page: &Page) -> Result<(), &'static str> {
        let malformed = "a page with malformed lengths of texts";
        let (texts, values) = match page {
            page if page.encoding() != Encoding::DELTA_BYTE_ARRAY => return Ok(()),
            Page::DataPage { buf, num_values, .. } => (buf, *num_values),
            Page::DataPageV2 {
                buf,
                num_values,
                num_nulls: 0,
                def_levels_byte_len: 0,
                rep_levels_byte_len: 0,
                ..
            } => (buf, *num_values),
            _ => return Err(malformed),
        };
        let bytes = if self.is_flat { decoded_bytes(texts, values.into()) } else { None };
        self.budget.charge(bytes.ok_or(malformed)?)
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        let checked = page.as_ref().map_or(Ok(()), |page| self.check(page));
        checked.map_err(|reason| ParquetError::General(reason.into()))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>, ParquetError> {
        self.pages.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests;
