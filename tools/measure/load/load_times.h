// When the tokens of requests that were served at the same time came, and what follows from it:
// throughput, time to the first token, gaps between tokens.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace knap {

// One request. Times are in milliseconds from the start of all.
struct TokenTimes {
    double start_ms = 0;             // when it was taken up
    std::vector<double> token_ms{};  // when each token came, in order

    double first_ms() const { return token_ms.front() - start_ms; }  // to the first token
};

struct LoadTimes {
    int n_tokens = 0;
    double wall_ms = 0;  // from the start to the last token of all
    double tokens_per_second = 0;
    double first_median_ms = 0;
    double first_p95_ms = 0;
    // Between consecutive tokens of a request. Tokens that were accepted together come together, so
    // the median may be 0.
    double gap_median_ms = 0;
    double gap_p95_ms = 0;
    double gap_max_ms = 0;

    bool operator==(const LoadTimes&) const = default;
};

// Requests without tokens count for nothing; one has some. Gaps are 0 where no request has two.
LoadTimes load_times_of(std::span<const TokenTimes> requests);

std::vector<double> gaps_of(std::span<const double> token_ms);

// Tokens per second while all requests were being answered: from the last first token to the first
// last token. Every request has tokens. Returns nullopt when there was no such time.
std::optional<double> rate_together(std::span<const TokenTimes> requests);

}  // namespace knap
