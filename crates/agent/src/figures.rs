//! Sums of a service that are no samples, as parts of the agent hand them to a window.

use plumb_formats::otlp::{Figure, FigureStack};

use crate::labels::Attributes;

/// Figures of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceFigures {
    /// Attributes of its resource.
    pub attributes: Attributes,
    /// What they count and in which unit, of which stack, and how much.
    pub figures: Vec<(&'static str, &'static str, FigureStack, u64)>,
}

/// What a window has besides its samples.
#[derive(Debug, Default)]
pub(crate) struct WindowFigures {
    /// Of its services.
    pub services: Vec<ServiceFigures>,
    /// System calls that found no room in the kernel: they are in no figure.
    pub lost_calls: u64,
}

/// Figures of services for a window whose resources these are. Those that have no samples in it get a place, too.
pub(crate) fn of_services(services: Vec<ServiceFigures>, resources: &mut Vec<Attributes>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for one in services {
        let resource = resource_of(one.attributes, resources);
        figures.extend(one.figures.into_iter().map(|(name, unit, stack, value)| Figure {
            resource,
            name,
            unit,
            stack,
            value,
            time_unix_ns: None,
        }));
    }
    figures
}

/// The place of a service, which is added if it has none.
pub(crate) fn resource_of(service: Attributes, resources: &mut Vec<Attributes>) -> usize {
    resources.iter().position(|known| *known == service).unwrap_or_else(|| {
        resources.push(service);
        resources.len() - 1
    })
}
