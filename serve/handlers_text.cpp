#include "base/text.h"
#include "serve/api/chat_body.h"
#include "serve/api/error.h"
#include "serve/api/fields.h"
#include "serve/handlers.h"
#include "text/utf8.h"

namespace knap {
namespace {

Json read_object(const std::shared_ptr<Exchange>& exchange) {
    Json body = parse_request_json(exchange->request().body);
    if (!body.is_object()) {
        throw RequestError({.message = concat("expected a JSON object, found ", kind_of(body))});
    }
    return body;
}

// A string, or its bytes where they are no text by themselves.
Json piece_json(const std::string& piece) {
    if (whole_utf8_length(piece) == piece.size()) {
        return piece;
    }
    Json bytes = Json::array();
    for (const char byte : piece) {
        bytes.push_back(static_cast<unsigned char>(byte));
    }
    return bytes;
}

}  // namespace

void answer_tokenize(Service& service, const std::shared_ptr<Exchange>& exchange) {
    const Json body = read_object(exchange);
    Fields fields(body);
    const auto content = fields.string("content");
    if (!content) {
        bad_field("content", "expected a string, found none");
    }
    const bool adds_special = fields.boolean("add_special").value_or(false);
    const bool parses_special = fields.boolean("parse_special").value_or(true);
    const bool has_pieces = fields.boolean("with_pieces").value_or(false);
    Json tokens = Json::array();
    for (const Token token : service.engine.tokenize(*content, adds_special, parses_special)) {
        tokens.push_back(has_pieces
                             ? Json{{"id", token}, {"piece", piece_json(service.piece(token))}}
                             : Json(token));
    }
    exchange->respond({.body = to_text({{"tokens", std::move(tokens)}})});
}

void answer_detokenize(Service& service, const std::shared_ptr<Exchange>& exchange) {
    const Json body = read_object(exchange);
    Fields fields(body);
    const Json* list = fields.array("tokens");
    if (list == nullptr) {
        bad_field("tokens", "expected an array of token ids, found none");
    }
    std::vector<Token> tokens;
    for (const Json& id : *list) {
        if (!id.is_number_integer() || id.get<double>() < 0 ||
            id.get<double>() >= service.info.n_vocab) {
            bad_field("tokens", "expected token ids of 0..", service.info.n_vocab - 1, ", found ",
                      id.is_structured() ? kind_of(id) : to_text(id));
        }
        tokens.push_back(id.get<Token>());
    }
    exchange->respond({.body = to_text({{"content", service.engine.detokenize(tokens)}})});
}

void answer_apply_template(Service& service, const std::shared_ptr<Exchange>& exchange) {
    const Json body = read_object(exchange);
    Fields fields(body);
    try {
        const ChatPrompt prompt = service.format().render(read_chat_request(fields));
        exchange->respond({.body = to_text({{"prompt", prompt.text}})});
    } catch (const Error& error) {
        throw RequestError(engine_error(error));
    }
}

}  // namespace knap
