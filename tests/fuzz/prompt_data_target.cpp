#include <set>
#include <string>

#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "tools/measure/prompt_data.h"

namespace knap::fuzz::prompt_data_target_parts {
namespace {

void run(std::string_view input) {
    const InputFile file(input);
    is_accepted([&] {
        const PromptData data = read_prompt_source(file.path().string(), 0);
        std::set<std::string> ids;
        for (const DataPrompt& prompt : data.prompts) {
            expect(!prompt.text.empty(), "a prompt has a text");
            expect(ids.insert(prompt.id).second, "a prompt has a name of its own");
        }
    });
    is_accepted([&] {
        expect(read_prompt_data(file.path(), 2).size() <= 2, "no more prompts than wanted");
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all =
        with_any(string_literals("tests/tools/measure"), {"\"prompt\"", "{\""});
    for (const std::string& text : deep_and_long()) {
        all.push_back(text);
        all.push_back("{\"prompt\": \"a\", \"id\": " + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::prompt_data_target_parts

knap::fuzz::Target knap::fuzz::prompt_data_target() {
    using namespace prompt_data_target_parts;
    return {.name = "prompt_data",
            .run = run,
            .seeds = seeds,
            .word_sources = {"tools/measure/prompt_data.cpp"}};
}
