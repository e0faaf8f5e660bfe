#include <algorithm>

#include "base/quoted.h"
#include "serve/answer/chat_answer.h"
#include "serve/answer/text_answer.h"
#include "serve/api/chat_body.h"
#include "serve/api/error.h"
#include "serve/api/text_body.h"
#include "serve/completion.h"
#include "serve/handlers.h"

namespace knap {
namespace {

// A name of another model is answered by ours unless the server is strict.
void check_model(const Service& service, const Json& body) {
    if (!service.config.is_strict_model || !body.is_object()) {
        return;
    }
    const auto model = body.find("model");
    if (model != body.end() && model->is_string() &&
        model->get_ref<const std::string&>() != service.model_name) {
        ApiError error = plain_error(404, concat("`model`: expected ", service.model_name,
                                                 ", found ", in_quotes(model->get<std::string>())));
        error.param = "model";
        error.code = "model_not_found";
        throw RequestError(std::move(error));
    }
}

void check_length(const Service& service, const std::vector<Token>& prompt) {
    const int n_ctx = service.engine.config().n_ctx;
    if (prompt.size() > static_cast<std::size_t>(n_ctx)) {
        throw RequestError({.message = concat("the prompt has ", prompt.size(),
                                              " tokens, more than the context of ", n_ctx),
                            .type = "exceed_context_size_error",
                            .code = "context_length_exceeded",
                            .details = {{"n_prompt_tokens", prompt.size()}, {"n_ctx", n_ctx}}});
    }
    if (prompt.empty()) {
        bad_field("prompt", "expected a text, found one without tokens");
    }
}

PieceOf piece_function(const Service& service) {
    return [&service](Token token) { return service.piece(token); };
}

// Refuses what the template or a schema refuses, with its own words.
ChatPrompt render(const Service& service, const ChatRequest& request) {
    try {
        return service.format().render(request);
    } catch (const Error& error) {
        throw RequestError(engine_error(error));
    }
}

Grammar grammar_of(const RequestConstraint& constraint) {
    try {
        return {.text = constraint.json_schema.empty()
                            ? constraint.grammar
                            : json_schema_to_gbnf(constraint.json_schema)};
    } catch (const Error& error) {
        bad_field("json_schema", error.what());
    }
}

std::vector<Token> tokens_of(const Service& service, const TextPrompt& prompt) {
    if (const auto* tokens = std::get_if<std::vector<Token>>(&prompt)) {
        return *tokens;
    }
    return service.engine.tokenize(std::get<std::string>(prompt), /*add_bos=*/true,
                                   /*parse_special=*/true);
}

std::string echo_of(const Service& service, const TextPrompt& prompt) {
    const auto* tokens = std::get_if<std::vector<Token>>(&prompt);
    return tokens != nullptr ? service.engine.detokenize(*tokens) : std::get<std::string>(prompt);
}

void start_text(Service& service, const std::shared_ptr<Exchange>& exchange, bool is_native) {
    const Json body = parse_request_json(exchange->request().body);
    check_model(service, body);
    TextBody read = read_text_body(body, service.config.defaults, service.info.n_vocab);
    CompletionPlan plan{.generation = std::move(read.generation), .ends_with_done = !is_native};
    plan.generation.options.grammar = grammar_of(read.constraint);
    std::vector<std::string> echoes;
    for (const TextPrompt& prompt : read.prompts) {
        plan.prompts.push_back(tokens_of(service, prompt));
        check_length(service, plan.prompts.back());
        echoes.insert(echoes.end(), static_cast<std::size_t>(plan.generation.n_choices),
                      read.echoes ? echo_of(service, prompt) : std::string());
    }
    AnswerHead head = service.head("text_completion", "cmpl-");
    if (is_native) {
        plan.answer =
            std::make_unique<NativeAnswer>(std::move(head), static_cast<int>(echoes.size()));
    } else {
        plan.answer = std::make_unique<TextAnswer>(
            TextAnswerParts{.head = std::move(head),
                            .piece_of = piece_function(service),
                            .echoes = std::move(echoes),
                            .has_logprobs = plan.generation.options.n_logprobs >= 0});
    }
    Completion::start(service, exchange, std::move(plan));
}

}  // namespace

void answer_chat(Service& service, const std::shared_ptr<Exchange>& exchange) {
    const Json body = parse_request_json(exchange->request().body);
    check_model(service, body);
    ChatBody read = read_chat_body(body, service.config.defaults, service.info.n_vocab);
    ChatPrompt prompt = render(service, read.chat);
    check_length(service, prompt.tokens);
    CompletionPlan plan{.generation = std::move(read.generation)};
    GenerateOptions& options = plan.generation.options;
    options.grammar = prompt.grammar;
    options.stop.insert(options.stop.end(), prompt.stop.begin(), prompt.stop.end());
    plan.prompts.push_back(prompt.tokens);
    plan.answer = std::make_unique<ChatAnswer>(ChatAnswerParts{
        .head = service.head(plan.generation.streams ? "chat.completion.chunk" : "chat.completion",
                             "chatcmpl-"),
        .format = service.format(),
        .prompt = std::move(prompt),
        .piece_of = piece_function(service),
        .n_choices = plan.generation.n_choices,
        .streams = plan.generation.streams,
        .has_logprobs = options.n_logprobs >= 0});
    Completion::start(service, exchange, std::move(plan));
}

void answer_text(Service& service, const std::shared_ptr<Exchange>& exchange) {
    start_text(service, exchange, /*is_native=*/false);
}

void answer_native(Service& service, const std::shared_ptr<Exchange>& exchange) {
    start_text(service, exchange, /*is_native=*/true);
}

}  // namespace knap
