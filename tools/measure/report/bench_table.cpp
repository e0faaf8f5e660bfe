#include "tools/measure/report/bench_table.h"

#include <algorithm>
#include <optional>

#include "base/number_text.h"
#include "base/text.h"
#include "tools/measure/report/bench_load_summary.h"
#include "tools/peer/peer_names.h"

namespace knap {
namespace {

std::string times_text(double speed, bool is_projection) {
    return concat(format_fixed(speed, 2), is_projection ? "x projected" : "x");
}

std::string interval(const std::optional<double>& low, const std::optional<double>& high) {
    return low && high ? concat(format_fixed(*low, 2), "-", format_fixed(*high, 2)) : "";
}

// "1.03x 0.98-1.07"
std::string request(const BenchSpeedup& speedup, bool is_projection) {
    const std::string within = interval(speedup.low, speedup.high);
    return concat(times_text(speedup.mean, is_projection), within.empty() ? "" : " ", within);
}

std::string percent(const std::optional<double>& share) {
    return share ? concat(format_fixed(100 * *share, 0), " %") : "";
}

double total(const std::vector<BenchTurn>& turns, double BenchTurn::*member) {
    double sum = 0;
    for (const BenchTurn& turn : turns) {
        sum += turn.*member;
    }
    return sum;
}

// Shares of the time for draft, verify, search and other: "61/35/2/2 %".
std::string time_split(const std::vector<BenchTurn>& turns) {
    const double whole = total(turns, &BenchTurn::decode_ms);
    std::string text;
    for (const auto member : {&BenchTurn::draft_ms, &BenchTurn::verify_ms, &BenchTurn::search_ms,
                              &BenchTurn::other_ms}) {
        text +=
            concat(text.empty() ? "" : "/", format_fixed(100 * total(turns, member) / whole, 0));
    }
    return text + " %";
}

std::vector<std::string> cells_of(const BenchRow& row) {
    const std::string options = row.options.empty() ? "" : concat(" (", row.options, ")");
    return {row.data,
            row.depth ? concat("depth ", *row.depth) : row.id,
            concat(row.n_prompt, row.is_cut ? " cut" : ""),
            concat(row.strategy, is_peer(row.strategy) ? options : ""),
            row.acceptance,
            times_text(row.speedup.mean, row.is_projection),
            interval(row.speedup.low, row.speedup.high),
            request(row.request_speedup, row.is_projection),
            format_fixed(row.tokens_per_second, 1),
            percent(row.acceptance_rate),
            format_fixed(row.mean_accepted_length, 2),
            time_split(row.turns),
            format_fixed(row.prefill_ms, 0),
            format_fixed(row.distinct_trigrams, 2)};
}

std::vector<std::string> cells_of(const BenchSummary& summary) {
    const bool has_interval = summary.n_prompts > 1;
    return {summary.strategy,
            summary.acceptance,
            summary.task.empty() ? "all" : summary.task,
            concat(summary.n_prompts),
            times_text(summary.speedup.mean, summary.is_projection),
            has_interval ? interval(summary.speedup.low, summary.speedup.high) : "",
            times_text(summary.lowest_speedup, summary.is_projection),
            request(has_interval ? BenchSpeedup{.mean = summary.request_speedup.mean,
                                                .low = summary.request_speedup.low,
                                                .high = summary.request_speedup.high}
                                 : BenchSpeedup{.mean = summary.request_speedup.mean},
                    summary.is_projection),
            format_fixed(summary.tokens_per_second, 1),
            percent(summary.acceptance_rate),
            format_fixed(summary.mean_accepted_length, 2)};
}

std::string milliseconds(double ms) {
    return concat(format_fixed(ms, ms < 10 ? 1 : 0), " ms");
}

std::vector<std::string> cells_of(const BenchLoad& load) {
    const LoadTimes times = times_over_turns(load);
    return {concat(load.strategy, is_peer(load.strategy) ? concat(" (", load.options, ")") : ""),
            load.acceptance,
            times_text(load.throughput.mean, load.is_projection),
            interval(load.throughput.low, load.throughput.high),
            format_fixed(times.tokens_per_second, 1),
            milliseconds(times.first_median_ms),
            milliseconds(times.first_p95_ms),
            milliseconds(times.gap_median_ms),
            milliseconds(times.gap_p95_ms),
            milliseconds(times.gap_max_ms),
            load.n_identical ? concat(*load.n_identical, " of ", load.n_prompts) : ""};
}

// Prompts whose texts by a peer were compared, and those with the same text.
struct PeerTexts {
    std::string name;
    int n_prompts = 0;
    std::optional<int> n_libllamas{};  // nullopt: libllama's plain text is its own
    int n_knaps = 0;

    void add(const BenchRow& row) {
        ++n_prompts;
        n_knaps += *row.identical_to_knap ? 1 : 0;
        if (row.identical_to_libllama) {
            n_libllamas = n_libllamas.value_or(0) + (*row.identical_to_libllama ? 1 : 0);
        }
    }
};

std::vector<std::string> cells_of(const PeerTexts& peer) {
    return {peer.name, concat(peer.n_prompts), peer.n_libllamas ? concat(*peer.n_libllamas) : "",
            concat(peer.n_knaps)};
}

template <typename Of>
BenchTable table_of(std::vector<std::string> headings, std::span<const Of> all) {
    BenchTable table{.headings = std::move(headings)};
    for (const Of& one : all) {
        table.lines.push_back(cells_of(one));
    }
    return table;
}

}  // namespace

BenchTable row_table(std::span<const BenchRow> rows) {
    return table_of(
        {"data", "prompt", "tokens", "strategy", "rule", "speedup", "95 % interval", "request",
         "tokens/s", "accepted", "length", "draft/verify/search/other", "prefill ms", "trigrams"},
        rows);
}

BenchTable summary_table(std::span<const BenchSummary> summaries) {
    return table_of({"strategy", "rule", "task", "prompts", "speedup", "95 % interval", "lowest",
                     "request", "tokens/s", "accepted", "length"},
                    summaries);
}

BenchTable peer_text_table(std::span<const BenchRow> rows) {
    std::vector<PeerTexts> peers;
    for (const BenchRow& row : rows) {
        if (!row.identical_to_knap) {
            continue;
        }
        auto peer = std::ranges::find(peers, row.strategy, &PeerTexts::name);
        if (peer == peers.end()) {
            peer = peers.insert(peers.end(), {.name = row.strategy});
        }
        peer->add(row);
    }
    return table_of({"peer", "prompts", "libllama's plain text", "knap's text"},
                    std::span<const PeerTexts>(peers));
}

BenchTable load_table(std::span<const BenchLoad> loads) {
    return table_of({"strategy", "rule", "throughput", "95 % interval", "tokens/s", "first",
                     "first p95", "gap", "gap p95", "gap max", "identical"},
                    loads);
}

}  // namespace knap
