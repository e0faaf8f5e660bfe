// The fields that every endpoint which generates text takes: limits, sampling, speculation, what to
// stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "knap/types.h"

#include "serve/api/fields.h"

namespace knap {

inline constexpr int kMaxChoices = 8;          // of one prompt
inline constexpr int kMaxRequestChoices = 32;  // of a request
inline constexpr std::size_t kMaxStops = 16;
inline constexpr std::size_t kMaxStopBytes = 256;

struct GenerationRequest {
    GenerateOptions options{};  // the seed is the first choice's; the others count up from it
    int n_choices = 1;
    bool streams = false;
    bool includes_usage = false;   // a last chunk with the usage
    bool reports_timings = false;  // in every chunk
    bool reports_progress = false;
    bool wants_decisions = false;
    bool wants_rounds = false;           // in chunks: where their tokens came from
    std::string prediction{};            // a text that the answer may resemble; empty: none
    std::vector<std::string> ignored{};  // names of fields without effect
};

// What applies where a request says nothing.
struct GenerationDefaults {
    GenerateOptions options{};
    bool has_seed = false;  // else every request gets a random one
};

// Reads and checks the shared fields. The caller reads its own from the same `fields` first, so
// that `ignored` lists what nobody knows.
GenerationRequest read_generation(Fields& fields, const GenerationDefaults& defaults, int n_vocab);

// A list of strings or a single one.
std::vector<std::string> read_strings(const Json& value, std::string_view name);

}  // namespace knap
