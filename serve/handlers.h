// The handlers of the endpoints. Each answers the exchange or throws RequestError.
#pragma once

#include <memory>

#include "serve/http/exchange.h"
#include "serve/service.h"

namespace knap {

// --- handlers_state.cpp ---
void answer_health(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_models(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_model(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_props(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_slots(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_metrics(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_openapi(Service& service, const std::shared_ptr<Exchange>& exchange);

// --- handlers_page.cpp ---
void answer_page(Service& service, const std::shared_ptr<Exchange>& exchange);

// --- handlers_text.cpp ---
void answer_tokenize(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_detokenize(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_apply_template(Service& service, const std::shared_ptr<Exchange>& exchange);

// --- handlers_completion.cpp ---
void answer_chat(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_text(Service& service, const std::shared_ptr<Exchange>& exchange);
void answer_native(Service& service, const std::shared_ptr<Exchange>& exchange);

}  // namespace knap
