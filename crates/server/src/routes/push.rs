//! `push.v1`: profiles in, as SDKs and Alloy send them.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use plumb_store::Batch;

use crate::app::App;
use crate::connect::{self, Codec, PackedBody};
use crate::error::ApiError;
use crate::ingest::{PUSH, PprofReader, check_json, check_message, series_labels};
use crate::options::IngestLimits;
use crate::pyroscope::push::{PushRequest, PushResponse};

pub(super) fn routes() -> Router<App> {
    Router::new().route("/push.v1.PusherService/Push", post(push))
}

async fn push(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(codec) = Codec::of(&parts.headers) else { return connect::unknown_codec() };
    let stored = async {
        let tenant = app.tenant(&parts.headers)?;
        let bytes = connect::read_body(&app, &tenant, &parts.headers, body).await?;
        app.ingest(tenant, move |limits| batch(codec, &bytes, limits)).await
    };
    match stored.await.and_then(|()| codec.encode(&PushResponse {})) {
        Ok(body) => codec.response(body),
        Err(error) => error.into_response(),
    }
}

fn batch(codec: Codec, body: &PackedBody, limits: &IngestLimits) -> Result<Batch, ApiError> {
    let bytes = body.unpacked(limits.unpacked)?;
    match codec {
        Codec::Proto => check_message(&bytes, &PUSH, limits.memory.decoded)?,
        Codec::Json => check_json(&bytes, limits.memory.decoded)?,
    }
    let request: PushRequest = codec.decode(&bytes)?;
    drop(bytes);
    let reader = PprofReader::new(limits);
    let mut batch = Batch::default();
    for series in &request.series {
        let pairs = series.labels.iter().map(|label| (&*label.name, &*label.value));
        let labels = series_labels(pairs, limits)?;
        for sample in &series.samples {
            let profile = reader.decode(&sample.raw_profile)?;
            reader.add(&mut batch, &labels, &profile)?;
        }
    }
    Ok(batch)
}
