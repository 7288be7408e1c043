//! Declaration of documents: each member once, with its type and its value.

/// Declares an object of a document, as the page knows it by a name, and its maker:
///
/// ```text
/// document! {
///     /// A row.
///     pub struct Row<'p> as "PageRow" of (view: &View<'p>, row: &'p analyze::Row) {
///         name: &'p str = &row.name,
///         percent: f64 = row.cost.percent_of(view.whole()),
///     }
/// }
/// ```
///
/// The maker is `Row::new(view, row)`. Members serialize by their names; tests make the page's type of it (`ts_rs`).
macro_rules! document {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? as $page:literal of ($($from:ident: $of:ty),* $(,)?) {
            $($(#[$with:meta])* $shown:vis $member:ident: $kind:ty = $value:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS), ts(rename = $page))]
        $vis struct $name $(<$life>)? {
            $($(#[$with])* $shown $member: $kind,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// Creates it.
            $vis fn new($($from: $of),*) -> Self {
                Self { $($member: $value,)* }
            }
        }
    };
}
