#include "serve/engine/metrics.h"

#include <algorithm>
#include <string>

namespace knap {
namespace {

// Where a token came from, as a label.
std::string origin_label(TokenOrigin origin, DraftSource source) {
    if (origin != TokenOrigin::accepted) {
        return origin == TokenOrigin::plain ? "plain" : "verified";
    }
    return std::string(to_string(source));
}

void raise_to(std::atomic<std::int64_t>& maximum, std::int64_t value) {
    std::int64_t seen = maximum.load();
    while (value > seen && !maximum.compare_exchange_weak(seen, value)) {
    }
}

}  // namespace

std::vector<double> Metrics::short_times() {
    return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5};
}

std::vector<double> Metrics::long_times() {
    return {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
}

void Metrics::add_part(const AnswerPart& part, std::string_view strategy, int n_running) {
    ++n_decodes_;
    n_busy_ += n_running;
    if (part.n_drafted > 0) {
        ++n_drafts_;
        n_drafted_ += part.n_drafted;
        n_accepted_ += part.n_accepted;
        for (int i = 0; i < std::min<int>(part.n_accepted, kPositions); ++i) {
            ++n_accepted_at_[static_cast<std::size_t>(i)];
        }
    }
    const std::lock_guard lock(mutex_);
    for (const AnswerToken& token : part.tokens) {
        ++n_by_origin_[{std::string(strategy), origin_label(token.origin, part.source)}];
    }
}

void Metrics::add_first_token(double seconds) {
    first_token_s_.add(seconds);
}

void Metrics::add_token_gap(double seconds) {
    token_gap_s_.add(seconds);
}

void Metrics::add_end(const JobEnd& end, std::string_view finish_reason, double seconds) {
    const Result& result = end.result;
    const int n_cached = result.n_prompt_reused + result.n_prompt_shared;
    n_prompt_ += result.n_prompt - n_cached;
    n_prompt_cached_ += n_cached;
    n_predicted_ += result.n_generated;
    prompt_s_.fetch_add(result.timings.prefill_ms / 1000);
    predicted_s_.fetch_add(result.timings.decode_ms / 1000);
    draft_s_.fetch_add(result.timings.draft_ms / 1000);
    verify_s_.fetch_add(result.timings.verify_ms / 1000);
    search_s_.fetch_add(result.timings.search_ms / 1000);
    n_near_ties_ += static_cast<std::int64_t>(result.speculation.near_ties.size());
    n_forced_ += result.speculation.n_forced;
    raise_to(n_tokens_max_, result.n_prompt + result.n_generated);
    request_s_.add(seconds);
    queue_s_.add(end.queue_ms / 1000);
    const std::lock_guard lock(mutex_);
    ++n_ended_[std::string(finish_reason)];
}

void Metrics::add_refusal(int status) {
    const std::lock_guard lock(mutex_);
    ++n_refused_[status];
}

Metrics::Rates Metrics::rates_since_last_call() {
    const auto rate = [](auto now, auto& before, double now_s, double& before_s) {
        const double seconds = now_s - before_s;
        const double per_second = seconds > 0 ? static_cast<double>(now - before) / seconds : 0.0;
        before = now;
        before_s = now_s;
        return per_second;
    };
    return {rate(n_prompt_.load(), prompt_before_, prompt_s_.load(), prompt_s_before_),
            rate(n_predicted_.load(), predicted_before_, predicted_s_.load(), predicted_s_before_)};
}

std::string Metrics::text(const ServerGauges& gauges) {
    const std::lock_guard lock(mutex_);
    MetricsPage page;
    write_llamacpp(gauges, page);
    write_vllm(gauges, page);
    write_own(page);
    return page.text();
}

void Metrics::write_llamacpp(const ServerGauges& gauges, MetricsPage& page) {
    page.counter("llamacpp:prompt_tokens_total", "Prompt tokens computed.", n_prompt_.load());
    page.counter("llamacpp:prompt_tokens_cached_total", "Prompt tokens found in the cache.",
                 n_prompt_cached_.load());
    page.counter("llamacpp:prompt_seconds_total", "Time spent on prompts.", prompt_s_.load());
    page.counter("llamacpp:tokens_predicted_total", "Tokens generated.", n_predicted_.load());
    page.counter("llamacpp:tokens_predicted_seconds_total", "Time spent on generating.",
                 predicted_s_.load());
    page.counter("llamacpp:n_decode_total", "Rounds of all answers: passes of the whole model.",
                 n_decodes_.load());
    page.counter("llamacpp:n_tokens_max", "Most tokens of one conversation.", n_tokens_max_.load());
    const Rates rates = rates_since_last_call();
    page.gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens per second since the last scrape.",
               rates.prompt_per_second);
    page.gauge("llamacpp:predicted_tokens_seconds",
               "Generated tokens per second since the last scrape.", rates.predicted_per_second);
    page.gauge("llamacpp:requests_processing", "Answers being generated.", gauges.n_running);
    page.gauge("llamacpp:requests_deferred", "Answers that wait for a session.", gauges.n_waiting);
    const auto n_decodes = static_cast<double>(n_decodes_.load());
    page.gauge("llamacpp:n_busy_slots_per_decode", "Answers under way, on average over rounds.",
               n_decodes > 0 ? static_cast<double>(n_busy_.load()) / n_decodes : 0.0);
    write_drafts("llamacpp:", "", page);
}

void Metrics::write_drafts(const std::string& prefix,
                           const std::string& labels,
                           MetricsPage& page) const {
    const std::string start = prefix + "spec_decode_num_";
    page.counter(start + "drafts_total", "Drafts verified.", n_drafts_.load(), labels);
    page.counter(start + "draft_tokens_total", "Tokens drafted.", n_drafted_.load(), labels);
    page.counter(start + "accepted_tokens_total", "Drafted tokens accepted.", n_accepted_.load(),
                 labels);
    const std::string by_position = start + "accepted_tokens_per_pos_total";
    page.declare(by_position, "counter", "Accepted tokens by their position in the draft.");
    for (std::size_t i = 0; i < kPositions; ++i) {
        if (i == 0 || n_accepted_at_[i].load() > 0) {
            page.sample(by_position,
                        joined_labels(labels, metric_label("position", std::to_string(i))),
                        n_accepted_at_[i].load());
        }
    }
}

void Metrics::write_vllm(const ServerGauges& gauges, MetricsPage& page) const {
    const std::string model = metric_label("model_name", model_) + ",engine=\"0\"";
    write_drafts("vllm:", model, page);
    page.counter("vllm:prompt_tokens_total", "Prompt tokens, cached ones included.",
                 n_prompt_.load() + n_prompt_cached_.load(), model);
    page.counter("vllm:generation_tokens_total", "Tokens generated.", n_predicted_.load(), model);
    page.declare("vllm:request_success_total", "counter", "Answers by the reason of their end.");
    for (const auto& [reason, n] : n_ended_) {
        page.sample("vllm:request_success_total",
                    joined_labels(model, metric_label("finished_reason", reason)), n);
    }
    page.gauge("vllm:num_requests_running", "Answers being generated.", gauges.n_running, model);
    page.gauge("vllm:num_requests_waiting", "Answers that wait for a session.", gauges.n_waiting,
               model);
    page.gauge("vllm:kv_cache_usage_perc", "Share of the cache in use, 0 to 1.", gauges.cache_use,
               model);
    page.histogram("vllm:time_to_first_token_seconds", "From the request to its first token.",
                   first_token_s_, model);
    page.histogram("vllm:inter_token_latency_seconds", "Between tokens of an answer.", token_gap_s_,
                   model);
    page.histogram("vllm:e2e_request_latency_seconds", "From the request to its end.", request_s_,
                   model);
    page.histogram("vllm:request_queue_time_seconds", "Waiting for a session.", queue_s_, model);
}

void Metrics::write_own(MetricsPage& page) const {
    page.declare("knap:tokens_total", "counter", "Generated tokens by where they came from.");
    for (const auto& [labels, n] : n_by_origin_) {
        page.sample("knap:tokens_total",
                    joined_labels(metric_label("strategy", labels.first),
                                  metric_label("origin", labels.second)),
                    n);
    }
    page.counter("knap:draft_seconds_total", "Time spent on drafting.", draft_s_.load());
    page.counter("knap:verify_seconds_total", "Time spent on verifying.", verify_s_.load());
    page.counter("knap:search_seconds_total", "Time spent on searching plans.", search_s_.load());
    page.counter("knap:idle_search_seconds_total",
                 "Time spent on measuring and searching while no request ran.", idle_s_.load());
    page.counter("knap:near_ties_total", "Tokens that rounding may have decided.",
                 n_near_ties_.load());
    page.counter("knap:forced_tokens_total",
                 "Tokens that a grammar left no choice about, but for white space.",
                 n_forced_.load());
    page.counter("knap:disconnects_total", "Clients that left before their answer was complete.",
                 n_disconnects_.load());
    page.declare("knap:requests_refused_total", "counter", "Requests refused, by status.");
    for (const auto& [status, n] : n_refused_) {
        page.sample("knap:requests_refused_total", metric_label("code", std::to_string(status)), n);
    }
}

}  // namespace knap
