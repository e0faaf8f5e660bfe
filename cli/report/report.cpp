#include "cli/report/report.h"

#include <array>

#include "base/text.h"

namespace knap {
namespace {

std::string describe_answer(const Result& result) {
    const Timings& timings = result.timings;
    const auto reused =
        result.n_prompt_reused > 0 ? concat(", ", result.n_prompt_reused, " reused") : "";
    return concat(result.n_prompt, " prompt tokens (",
                  format_fixed(timings.prefill_tokens_per_second, 1), " tokens/s", reused, "), ",
                  result.n_generated, " generated (", format_fixed(timings.tokens_per_second, 1),
                  " tokens/s, ", format_fixed(timings.bandwidth_gb_per_second, 1), " GB/s)");
}

// Returns an empty text when nothing was drafted.
std::string describe_drafts(const SpeculationStatistics& drafts) {
    if (drafts.n_drafted == 0) {
        return "";
    }
    return concat(drafts.rounds, " rounds, ", format_percent(drafts.acceptance_rate), " of ",
                  drafts.n_drafted, " drafted tokens accepted, ",
                  format_fixed(drafts.mean_accepted_length, 2), " tokens per round",
                  drafts.is_projection ? " (a projection: acceptance was assumed)" : "");
}

nlohmann::ordered_json to_json(const SourceStatistics& source) {
    return {{"rounds", source.rounds},
            {"n_drafted", source.n_drafted},
            {"n_accepted", source.n_accepted}};
}

nlohmann::ordered_json to_json(const std::vector<NearTie>& near_ties) {
    auto list = nlohmann::ordered_json::array();
    for (const NearTie& tie : near_ties) {
        list.push_back({{"position", tie.position}, {"gap", tie.gap}});
    }
    return list;
}

nlohmann::ordered_json to_json(const std::vector<Decision>& decisions) {
    auto list = nlohmann::ordered_json::array();
    for (const Decision& decision : decisions) {
        list.push_back({{"token", decision.token},
                        {"source", decision.source},
                        {"plan", decision.plan.empty() ? nlohmann::ordered_json(nullptr)
                                                       : nlohmann::ordered_json(decision.plan)},
                        {"reason", decision.reason},
                        {"predicted", decision.predicted},
                        {"measured", decision.measured}});
    }
    return list;
}

}  // namespace

std::string format_percent(double share) {
    return format_fixed(100 * share, 1) + " %";
}

std::string format_bytes(std::int64_t n_bytes) {
    constexpr std::array kUnits{"kB", "MB", "GB", "TB"};
    if (n_bytes < 1000) {
        return concat(n_bytes, " B");
    }
    double value = static_cast<double>(n_bytes) / 1000;
    std::size_t unit = 0;
    for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) {
        value /= 1000;
    }
    return concat(format_fixed(value, 1), ' ', kUnits[unit]);
}

std::string statistics_line(const Result& result) {
    const std::string drafts = describe_drafts(result.speculation);
    return concat(describe_answer(result), drafts.empty() ? "" : "; ", drafts);
}

std::string statistics_table(const Result& result,
                             std::size_t n_history,
                             const RuntimeConfig& config) {
    const MemoryStatistics& memory = result.memory;
    const std::string drafts = describe_drafts(result.speculation);
    return concat("last answer  ", describe_answer(result), "\n",                     //
                  drafts.empty() ? "" : concat("drafting     ", drafts, "\n"),        //
                  "context      ", n_history, " of ", config.n_ctx, " tokens\n",      //
                  "memory       ", format_bytes(memory.weights_bytes), " weights, ",  //
                  format_bytes(memory.cache_bytes), " cache, ",                       //
                  format_bytes(memory.scratch_bytes), " scratch, ",                   //
                  format_bytes(memory.peak_rss_bytes), " peak\n",                     //
                  "graphs       ", result.graphs.built, " built, ", result.graphs.reused,
                  " reused, ", result.graphs.evicted, " evicted\n");
}

nlohmann::ordered_json to_json(const Result& result, const RuntimeConfig& config) {
    const Timings& timings = result.timings;
    const SpeculationStatistics& drafts = result.speculation;
    return {
        {"text", result.text},
        {"tokens", result.tokens},
        {"stop", to_string(result.stop)},
        {"strategy", result.strategy},
        {"n_prompt", result.n_prompt},
        {"n_prompt_reused", result.n_prompt_reused},
        {"n_generated", result.n_generated},
        {"seed", result.seed},
        {"rounds", drafts.rounds},
        {"n_drafted", drafts.n_drafted},
        {"n_tree_nodes", drafts.n_tree_nodes},
        {"n_accepted", drafts.n_accepted},
        {"n_forced", drafts.n_forced},
        {"acceptance_rate", drafts.acceptance_rate},
        {"mean_accepted_length", drafts.mean_accepted_length},
        {"acceptance_by_position", drafts.acceptance_by_position},
        {"sources",
         {{"copy", to_json(drafts.copies)},
          {"plan", to_json(drafts.plans)},
          {"cascade", to_json(drafts.cascades)}}},
        {"near_ties", to_json(drafts.near_ties)},
        {"row_invariant", drafts.row_invariant},
        {"is_projection", drafts.is_projection},
        {"decisions", to_json(result.decisions)},
        {"timings",
         {
             {"load_ms", timings.load_ms},
             {"prefill_ms", timings.prefill_ms},
             {"decode_ms", timings.decode_ms},
             {"compute_ms", timings.compute_ms},
             {"host_ms", timings.host_ms},
             {"draft_ms", timings.draft_ms},
             {"verify_ms", timings.verify_ms},
             {"search_ms", timings.search_ms},
             {"other_ms", timings.other_ms},
             {"tokens_per_second", timings.tokens_per_second},
             {"prefill_tokens_per_second", timings.prefill_tokens_per_second},
             {"bandwidth_gb_per_second", timings.bandwidth_gb_per_second},
         }},
        {"graphs",
         {
             {"built", result.graphs.built},
             {"reused", result.graphs.reused},
             {"evicted", result.graphs.evicted},
         }},
        {"cuda_graphs",
         {
             {"captured", result.cuda_graphs.captured},
             {"reset", result.cuda_graphs.reset},
         }},
        {"allocations_after_warmup", result.allocations_after_warmup},
        {"memory",
         {
             {"weights", result.memory.weights_bytes},
             {"cache", result.memory.cache_bytes},
             {"scratch", result.memory.scratch_bytes},
             {"peak_rss", result.memory.peak_rss_bytes},
         }},
        {"device", result.device},
        {"attention_path", result.attention_path},
        {"repack", result.repack},
        {"products", result.products},
        {"cuda_kernels", result.cuda_kernels},
        {"model", config.model_path.string()},
        {"n_threads", config.n_threads},
        {"n_ctx", config.n_ctx},
    };
}

}  // namespace knap
