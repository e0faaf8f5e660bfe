#include "knap/knap.h"

#include "serve/api/error.h"
#include "serve/handlers.h"
#include "serve/openapi.h"

namespace knap {
namespace {

void respond_json(const std::shared_ptr<Exchange>& exchange, const Json& value) {
    exchange->respond({.body = to_text(value)});
}

Json model_json(const Service& service) {
    const ModelInfo& info = service.info;
    const int n_ctx = service.engine.config().n_ctx;
    return {{"id", service.model_name},
            {"object", "model"},
            {"created", service.created},
            {"owned_by", "knap"},
            {"max_model_len", n_ctx},
            {"meta",
             {{"n_ctx", n_ctx},
              {"n_ctx_train", info.n_ctx_train},
              {"n_vocab", info.n_vocab},
              {"n_params", info.n_parameters},
              {"size", info.file_bytes}}}};
}

// The settings of a request that says nothing.
Json default_params(const GenerationDefaults& defaults) {
    const SamplingOptions& sampling = defaults.options.sampling;
    return {{"n_predict", defaults.options.n_predict},
            {"temperature", sampling.temperature},
            {"top_k", sampling.top_k},
            {"top_p", sampling.top_p},
            {"min_p", sampling.min_p},
            {"repeat_penalty", sampling.repeat_penalty},
            {"repeat_last_n", sampling.repeat_last_n},
            {"presence_penalty", sampling.presence_penalty},
            {"frequency_penalty", sampling.frequency_penalty},
            {"seed", defaults.has_seed ? Json(sampling.seed) : Json(-1)},
            {"stop", defaults.options.stop},
            {"ignore_eos", defaults.options.ignore_eos}};
}

Json strategy_names_json() {
    Json names = Json::array();
    for (const StrategyInfo& strategy : strategies()) {
        names.push_back(strategy.name);
    }
    return names;
}

Json session_json(const SessionState& state, int n_ctx) {
    return {{"id", state.id},
            {"is_processing", state.is_processing},
            {"n_ctx", n_ctx},
            {"id_task", state.job},
            {"n_prompt_tokens", state.n_prompt},
            {"n_prompt_tokens_processed", state.n_prompt_done},
            {"n_decoded", state.n_generated},
            {"strategy", state.strategy}};
}

}  // namespace

void answer_health(Service& service, const std::shared_ptr<Exchange>& exchange) {
    if (service.is_stopping) {
        ApiError error = plain_error(503, "the server is stopping");
        error.headers = {{"Retry-After", "1"}};
        throw RequestError(std::move(error));
    }
    respond_json(exchange, {{"status", "ok"}});
}

void answer_models(Service& service, const std::shared_ptr<Exchange>& exchange) {
    respond_json(exchange, {{"object", "list"}, {"data", Json::array({model_json(service)})}});
}

void answer_model(Service& service, const std::shared_ptr<Exchange>& exchange) {
    constexpr std::string_view kPrefix = "/v1/models/";
    if (exchange->request().path.substr(kPrefix.size()) != service.model_name) {
        ApiError error = plain_error(
            404, concat("no such model; this server has ", service.model_name, " alone"));
        error.code = "model_not_found";
        throw RequestError(std::move(error));
    }
    respond_json(exchange, model_json(service));
}

void answer_props(Service& service, const std::shared_ptr<Exchange>& exchange) {
    const RuntimeConfig& runtime = service.engine.config();
    const GenerationDefaults& defaults = service.config.defaults;
    Json capabilities = Json::object();
    std::string source;
    if (service.has_format()) {
        source = service.format().source();
        for (const auto& [name, is_there] : service.format().capabilities()) {
            capabilities[name] = is_there;
        }
    }
    respond_json(exchange, {{"default_generation_settings",
                             {{"n_ctx", runtime.n_ctx}, {"params", default_params(defaults)}}},
                            {"total_slots", service.config.n_sessions},
                            {"model_alias", service.model_name},
                            {"chat_template", source},
                            {"chat_template_caps", std::move(capabilities)},
                            {"bos_token", service.info.bos_token},
                            {"eos_token", service.info.eos_token},
                            {"build_info", concat("knap ", version())},
                            {"modalities", {{"vision", false}, {"audio", false}}},
                            {"knap",
                             {{"strategies", strategy_names_json()},
                              {"strategy", defaults.options.speculation.strategy},
                              {"device", join(runtime.devices, ",")},
                              {"row_invariant", service.engine.is_batch_invariant()}}}});
}

void answer_slots(Service& service, const std::shared_ptr<Exchange>& exchange) {
    if (!service.config.has_slots) {
        throw RequestError(plain_error(501, "this server does not list its sessions"));
    }
    Json list = Json::array();
    bool has_idle = false;
    for (const SessionState& state : service.pool.sessions()) {
        has_idle |= !state.is_processing;
        list.push_back(session_json(state, service.engine.config().n_ctx));
    }
    if (!has_idle && !exchange->request().query_value("fail_on_no_slot").empty()) {
        throw RequestError(plain_error(503, "every session is busy"));
    }
    respond_json(exchange, list);
}

void answer_metrics(Service& service, const std::shared_ptr<Exchange>& exchange) {
    if (!service.config.has_metrics) {
        throw RequestError(plain_error(501, "this server does not publish metrics"));
    }
    exchange->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                       .body = service.metrics.text(service.gauges())});
}

void answer_openapi(Service&, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.body = std::string(openapi_files().front().content)});
}

}  // namespace knap
