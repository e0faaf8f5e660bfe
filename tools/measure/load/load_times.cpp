#include "tools/measure/load/load_times.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/quantile.h"

namespace knap {

std::vector<double> gaps_of(std::span<const double> token_ms) {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < token_ms.size(); ++i) {
        gaps.push_back(token_ms[i] - token_ms[i - 1]);
    }
    return gaps;
}

LoadTimes load_times_of(std::span<const TokenTimes> requests) {
    LoadTimes times;
    std::vector<double> firsts;
    std::vector<double> gaps;
    for (const TokenTimes& request : requests) {
        if (request.token_ms.empty()) {
            continue;
        }
        times.n_tokens += static_cast<int>(request.token_ms.size());
        times.wall_ms = std::max(times.wall_ms, request.token_ms.back());
        firsts.push_back(request.first_ms());
        std::ranges::copy(gaps_of(request.token_ms), std::back_inserter(gaps));
    }
    KNAP_ASSERT(!firsts.empty(), "some request has a token");
    times.tokens_per_second = 1e3 * times.n_tokens / times.wall_ms;
    times.first_median_ms = quantile(firsts, 0.5);
    times.first_p95_ms = quantile(firsts, 0.95);
    if (!gaps.empty()) {
        times.gap_median_ms = quantile(gaps, 0.5);
        times.gap_p95_ms = quantile(gaps, 0.95);
        times.gap_max_ms = std::ranges::max(gaps);
    }
    return times;
}

std::optional<double> rate_together(std::span<const TokenTimes> requests) {
    double begin = 0;
    double end = std::numeric_limits<double>::infinity();
    for (const TokenTimes& request : requests) {
        begin = std::max(begin, request.token_ms.front());
        end = std::min(end, request.token_ms.back());
    }
    if (end <= begin) {
        return std::nullopt;
    }
    std::ptrdiff_t n_tokens = 0;
    for (const TokenTimes& request : requests) {
        n_tokens += std::ranges::count_if(request.token_ms,
                                          [&](double ms) { return ms > begin && ms <= end; });
    }
    return 1e3 * static_cast<double>(n_tokens) / (end - begin);
}

}  // namespace knap
