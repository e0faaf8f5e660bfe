#include <algorithm>

#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "hub/choice.h"
#include "hub/listing.h"
#include "hub/reference.h"

namespace knap::fuzz::hub_listing_target_parts {
namespace {

void check(const HubFile& file) {
    expect(is_safe_path(file.path) && file.path.find("..") != 0, "a path stays in its folder");
    expect(to_text(file.digest).size() > 40, "a file has a checksum");
}

// A line with a reference, and what the hub answers.
void run(std::string_view input) {
    Choices choices(input);
    HubReference reference{.repository = "user/repo"};
    is_accepted([&] { reference = parse_hub_reference(choices.line()); });
    is_accepted(
        [&] { expect(parse_commit(choices.rest()).size() == 40, "a commit has 40 digits"); });
    is_accepted([&] {
        std::vector<HubFile> files;
        parse_tree(choices.rest(), files);
        std::ranges::for_each(files, check);
        std::ranges::for_each(choose_files(files, reference), check);
    });
}

constexpr const char* kBranches =
    R"({"tags":[],"branches":[{"name":"main","ref":"refs/heads/main",)"
    R"("targetCommit":"0123456789abcdef0123456789abcdef01234567"}]})";
constexpr const char* kTree =
    R"([{"type":"directory","oid":"a","size":0,"path":"Q8_0"},)"
    R"({"type":"file","oid":"0123456789abcdef0123456789abcdef01234567","size":64,"path":"a-Q4_K_M.gguf"},)"
    R"({"type":"file","oid":"1","size":65,"lfs":{"oid":)"
    R"("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","size":65},)"
    R"("path":"Q8_0/a-00001-of-00002.gguf"},)"
    R"({"type":"file","oid":"0123456789abcdef0123456789abcdef01234567","size":64,)"
    R"("path":"Q8_0/a-00002-of-00002.gguf"}])";

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const char* reference : {"user/repo", "user/repo:Q8_0", "user/repo:Q4_K_M",
                                  "user/repo:Q8_0/a-00001-of-00002.gguf"}) {
        for (const char* answer : {kBranches, kTree}) {
            all.push_back(std::string(reference) + "\n" + answer);
        }
    }
    for (const std::string& text : string_literals("tests/hub/choice_test.cpp")) {
        all.push_back(text + "\n" + kTree);
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back("user/repo\n" + text);
        all.push_back(text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::hub_listing_target_parts

knap::fuzz::Target knap::fuzz::hub_listing_target() {
    using namespace hub_listing_target_parts;
    return {.name = "hub_listing",
            .run = run,
            .seeds = seeds,
            .max_bytes = 2048,
            .word_sources = {"hub/listing.cpp", "hub/choice.cpp"}};
}
