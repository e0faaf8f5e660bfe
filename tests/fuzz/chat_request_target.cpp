#include "fuzz/request_seeds.h"
#include "fuzz/targets.h"
#include "serve/api/chat_body.h"
#include "serve/api/error.h"
#include "serve/api/json.h"
#include "text/chat_models.h"
#include "text/grammar/grammar.h"

namespace knap::fuzz::chat_request_target_parts {
namespace {

// As the server does, up to the point where a session takes over.
void take(const test::ChatModel& model, std::string_view body) {
    const ChatBody read = read_chat_body(parse_request_json(body), {}, model.tokenizer->n_vocab());
    expect(read.generation.n_choices >= 1 && read.generation.n_choices <= kMaxChoices,
           "the number of answers has a limit");
    const ChatPrompt prompt = model.format.render(read.chat);
    expect(prompt.text.size() <= kMaxChatBytes, "a prompt has a limit");
    if (!prompt.grammar.text.empty()) {
        const GrammarState state(*model.tokenizer, prompt.grammar);
    }
    model.format.parse(prompt, "<think>a</think>b", true);
}

void run(std::string_view input) {
    static const test::ChatModel model(test::kQwenTemplate);
    try {
        is_accepted([&] { take(model, input); });
    } catch (const RequestError& error) {
        expect(error.error().status >= 400 && error.error().status < 500, "a fault of the client");
        to_text(to_json(error.error()));
    }
}

}  // namespace
}  // namespace knap::fuzz::chat_request_target_parts

knap::fuzz::Target knap::fuzz::chat_request_target() {
    using namespace chat_request_target_parts;
    return {.name = "chat_request",
            .run = run,
            .seeds = request_bodies,
            .max_bytes = 2048,
            .word_sources = {"serve/api", "tests/serve/api/random_body_test.cpp",
                             "src/text/grammar/json_schema.cpp"}};
}
