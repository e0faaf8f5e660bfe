#include "fuzz/request_seeds.h"

#include <nlohmann/json.hpp>

#include "fuzz/material.h"

namespace knap::fuzz {
namespace {

constexpr const char* kMessages = R"("messages":[{"role":"user","content":"Hi"}],"prompt":"Hi")";

bool is_object(const std::string& text) {
    return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false).is_object();
}

}  // namespace

std::vector<std::string> request_bodies() {
    std::vector<std::string> all{std::string("{") + kMessages + "}"};
    for (const char* source : {"tests/serve", "bench/serve"}) {
        for (const std::string& text : with_any(string_literals(source), {"\""})) {
            for (const std::string& body :
                 {text, "{" + text + "}", std::string("{") + kMessages + "," + text + "}",
                  std::string("{") + kMessages + ",\"tools\":[" + text + "]}",
                  std::string("{") + kMessages + ",\"response_format\":" + text + "}"}) {
                if (is_object(body)) {
                    all.push_back(body);
                }
            }
        }
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back(text);
        all.push_back(std::string("{") + kMessages + ",\"a\":" + text);
        all.push_back(R"({"messages":[{"role":"user","content":")" + text + R"("}],"prompt":")" +
                      text + "\"}");
    }
    return all;
}

}  // namespace knap::fuzz
