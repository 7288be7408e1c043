//! `push.v1`: profiles in, as SDKs and Alloy send them.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use plumb_store::Batch;

use crate::app::App;
use crate::connect::{self, Codec};
use crate::error::ApiError;
use crate::ingest::{PprofReader, series_labels};
use crate::options::ServerOptions;
use crate::wire::push::{PushRequest, PushResponse};

pub(super) fn routes() -> Router<App> {
    Router::new().route("/push.v1.PusherService/Push", post(push))
}

async fn push(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(codec) = Codec::of(&parts.headers) else { return connect::unknown_codec() };
    let stored = async {
        let tenant = app.tenant(&parts.headers)?;
        let bytes = connect::read_body(&app, &parts.headers, body).await?;
        // Profiles in it are gzipped, to a fifth or so.
        let size = bytes.len().saturating_mul(5);
        app.ingest(tenant, size, move |options| batch(codec, &bytes, options)).await
    };
    match stored.await.and_then(|()| codec.encode(&PushResponse {})) {
        Ok(body) => codec.response(body),
        Err(error) => error.into_response(),
    }
}

fn batch(codec: Codec, bytes: &[u8], options: &ServerOptions) -> Result<Batch, ApiError> {
    let request: PushRequest = codec.decode(bytes)?;
    let reader = PprofReader::new(&options.ingest);
    let mut batch = Batch::default();
    for series in &request.series {
        let pairs = series.labels.iter().map(|label| (&*label.name, &*label.value));
        let labels = series_labels(pairs, &options.ingest)?;
        for sample in &series.samples {
            let profile = reader.decode(&sample.raw_profile)?;
            reader.add(&mut batch, &labels, &profile)?;
        }
    }
    Ok(batch)
}
