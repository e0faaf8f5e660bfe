#include "knap/chat.h"

#include "fuzz/request_seeds.h"
#include "fuzz/targets.h"
#include "serve/api/error.h"
#include "serve/api/json.h"
#include "serve/api/text_body.h"
#include "text/chat_models.h"

namespace knap::fuzz::text_request_target_parts {
namespace {

void take(const Tokenizer& tokenizer, std::string_view body) {
    const Json json = parse_request_json(body);
    const TextBody read = read_text_body(json, {}, tokenizer.n_vocab());
    expect(parse_request_json(to_text(json)) == json, "JSON can be read as it is written");
    for (const TextPrompt& prompt : read.prompts) {
        if (const auto* tokens = std::get_if<std::vector<Token>>(&prompt)) {
            tokenizer.decode(*tokens);
        } else {
            tokenizer.encode(std::get<std::string>(prompt), true, true);
        }
    }
    for (const auto& [token, bias] : read.generation.options.sampling.logit_bias) {
        tokenizer.piece(token);
    }
}

void run(std::string_view input) {
    static const auto tokenizer = test::load_vocabulary(test::chat_vocabulary(""));
    try {
        take(*tokenizer, input);
    } catch (const RequestError& error) {
        expect(error.error().status >= 400 && error.error().status < 500, "a fault of the client");
        to_text(to_json(error.error()));
    }
}

}  // namespace
}  // namespace knap::fuzz::text_request_target_parts

knap::fuzz::Target knap::fuzz::text_request_target() {
    using namespace text_request_target_parts;
    return {.name = "text_request",
            .run = run,
            .seeds = request_bodies,
            .max_bytes = 2048,
            .word_sources = {"serve/api", "tests/serve/api/random_body_test.cpp"}};
}
