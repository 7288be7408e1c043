//! Figures: per-service sums that are not samples, as parts of the agent add them to a window.

use plumb_formats::otlp::{Figure, FigureStack};

use crate::labels::Attributes;

/// Figures of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceFigures {
    /// Attributes of its resource.
    pub attributes: Attributes,
    /// Name, unit, stack and value of each figure.
    pub figures: Vec<(&'static str, &'static str, FigureStack, u64)>,
}

/// The part of a window that is not samples.
#[derive(Debug, Default)]
pub(crate) struct WindowFigures {
    /// Figures per service.
    pub services: Vec<ServiceFigures>,
    /// System calls that found no room in the kernel's table: they are in no figure.
    pub lost_calls: u64,
}

/// Turns the figures of services into those of a window with `resources`. Adds a resource for a service without samples.
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

/// Index of a service's resource, which is added if it is missing.
pub(crate) fn resource_of(service: Attributes, resources: &mut Vec<Attributes>) -> usize {
    resources.iter().position(|known| *known == service).unwrap_or_else(|| {
        resources.push(service);
        resources.len() - 1
    })
}
