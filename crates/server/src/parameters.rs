//! Parameters in a path, decoded: those of all answers, on recordings and on a store.

pub(crate) use plumb_documents::answers::Parameters;
