#include "tools/exactness/record.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text_file.h"
#include "runtime/files/json_file.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_json(std::optional<Token> token) {
    return token ? ordered_json(*token) : ordered_json(nullptr);
}

ordered_json to_json(const ComparedAnswer& answer) {
    ordered_json object = {{"sampling", answer.sampling},     {"constraint", answer.constraint},
                           {"n_prompt", answer.n_prompt},     {"n_tokens", answer.n_tokens},
                           {"n_drafted", answer.n_drafted},   {"n_accepted", answer.n_accepted},
                           {"n_copied", answer.n_copied},     {"n_planned", answer.n_planned},
                           {"n_cascaded", answer.n_cascaded}, {"n_forced", answer.n_forced}};
    if (answer.difference) {
        object["difference"] = {{"position", answer.difference->position},
                                {"expected", to_json(answer.difference->expected)},
                                {"found", to_json(answer.difference->found)}};
    }
    return object;
}

std::optional<Token> token_in(const json& object, const char* name) {
    return object.contains(name) && object[name].is_null()
               ? std::nullopt
               : std::optional(integer_in(object, name, 0, kAnyInteger));
}

ComparedAnswer answer_from(const json& object) {
    ComparedAnswer answer{.sampling = text_in(object, "sampling"),
                          .constraint = text_in(object, "constraint"),
                          .n_prompt = integer_in(object, "n_prompt", 1, kAnyInteger),
                          .n_tokens = integer_in(object, "n_tokens", 0, kAnyInteger),
                          .n_drafted = integer_in(object, "n_drafted", 0, kAnyInteger),
                          .n_accepted = integer_in(object, "n_accepted", 0, kAnyInteger),
                          .n_copied = integer_in(object, "n_copied", 0, kAnyInteger),
                          .n_planned = integer_in(object, "n_planned", 0, kAnyInteger),
                          .n_cascaded = integer_in(object, "n_cascaded", 0, kAnyInteger),
                          .n_forced = integer_in(object, "n_forced", 0, kAnyInteger)};
    if (object.contains("difference")) {
        const json& difference = object_in(object, "difference");
        answer.difference = Divergence{
            .position = integer_in(difference, "position", 0, kAnyInteger),
            .expected = token_in(difference, "expected"),
            .found = token_in(difference, "found"),
        };
    }
    return answer;
}

}  // namespace

bool CompletedCase::differs() const {
    return std::ranges::any_of(
        answers, [](const ComparedAnswer& answer) { return answer.difference.has_value(); });
}

std::string to_line(const CompletedCase& done) {
    ordered_json object = {{"run", done.run},
                           {"case", done.number},
                           {"model", done.model},
                           {"kernels", done.kernels},
                           {"strategy", done.strategy},
                           {"contender", done.contender},
                           {"variant", ordered_json::object()},
                           {"answers", ordered_json::array()},
                           {"flags", done.flags}};
    for (const auto& [name, value] : done.variant) {
        object["variant"][name] = value;
    }
    for (const ComparedAnswer& answer : done.answers) {
        object["answers"].push_back(to_json(answer));
    }
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

CompletedCase case_from(const std::string& line) {
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
        fail("expected a JSON object, found ",
             object.is_discarded() ? "damaged text" : object.type_name());
    }
    CompletedCase done{.run = text_in(object, "run"),
                       .number = integer_in(object, "case", 0, kAnyInteger),
                       .model = text_in(object, "model"),
                       .kernels = text_in(object, "kernels"),
                       .contender = text_in(object, "contender"),
                       .strategy = text_in(object, "strategy"),
                       .flags = text_in(object, "flags")};
    const json& variant = object_in(object, "variant");
    for (const auto& [name, ignored] : variant.items()) {
        done.variant.emplace_back(name, text_in(variant, name.c_str()));
    }
    for (const json& answer : array_in(object, "answers")) {
        done.answers.push_back(answer_from(answer));
    }
    return done;
}

ExactnessRecord::ExactnessRecord(const std::filesystem::path& path) {
    if (path.empty()) {
        return;
    }
    file_ = std::make_unique<WrittenFile>(path, 0);
    lock_ = std::make_unique<FileLock>(
        path, [&] { fail(path.string(), ": another process is writing this record"); });
    read(path);
}

void ExactnessRecord::read(const std::filesystem::path& path) {
    const std::string text = read_text_file(path, "record");
    int n_lines = 0;
    for (std::size_t end; (end = text.find('\n', n_bytes_)) != std::string::npos;
         n_bytes_ = end + 1) {
        ++n_lines;
        try {
            keep(case_from(text.substr(n_bytes_, end - n_bytes_)));
        } catch (const Error& error) {
            fail("record ", path.string(), ":", n_lines, ": ", error.what());
        }
    }
    file_->resize(n_bytes_);
}

void ExactnessRecord::keep(CompletedCase done) {
    known_.emplace(done.run, done.number);
    cases_.push_back(std::move(done));
}

void ExactnessRecord::add(CompletedCase done) {
    if (file_) {
        const std::string line = to_line(done) + '\n';
        file_->write_at(n_bytes_, std::as_bytes(std::span(line)));
        n_bytes_ += line.size();
    }
    keep(std::move(done));
}

}  // namespace knap
