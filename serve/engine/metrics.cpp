#include "serve/engine/metrics.h"

#include <algorithm>
#include <sstream>

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

// Writes metrics in Prometheus' text format.
class Page {
  public:
    void declare(std::string_view name, std::string_view type, std::string_view help) {
        out_ << "# HELP " << name << " " << help << "\n# TYPE " << name << " " << type << "\n";
    }
    template <typename Value>
    void sample(std::string_view name, const std::string& labels, Value value) {
        out_ << name;
        if (!labels.empty()) {
            out_ << "{" << labels << "}";
        }
        out_ << " " << value << "\n";
    }
    template <typename Value>
    void metric(std::string_view name,
                std::string_view type,
                std::string_view help,
                const std::string& labels,
                Value value) {
        declare(name, type, help);
        sample(name, labels, value);
    }
    void histogram(const std::string& name,
                   std::string_view help,
                   const std::string& labels,
                   const Histogram& histogram) {
        declare(name, "histogram", help);
        const std::vector<double>& bounds = histogram.upper_bounds();
        for (std::size_t i = 0; i < bounds.size(); ++i) {
            std::ostringstream bound;
            bound << bounds[i];
            sample(name + "_bucket", labels + ",le=\"" + bound.str() + "\"",
                   histogram.cumulative(i));
        }
        const std::int64_t n = histogram.cumulative(bounds.size());
        sample(name + "_bucket", labels + ",le=\"+Inf\"", n);
        sample(name + "_sum", labels, histogram.sum());
        sample(name + "_count", labels, n);
    }
    std::string str() const { return out_.str(); }

  private:
    std::ostringstream out_;
};

std::string escaped(std::string_view text) {
    std::string out;
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') {
            out += '\\';
        }
        out += letter == '\n' ? ' ' : letter;
    }
    return out;
}

std::string label(std::string_view name, std::string_view value) {
    return std::string(name) + "=\"" + escaped(value) + "\"";
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
    const Rates rates = rates_since_last_call();
    Page page;
    const std::string none;
    const auto counter = [&](const char* name, const char* help, auto value) {
        page.metric(std::string("llamacpp:") + name, "counter", help, none, value);
    };
    counter("prompt_tokens_total", "Prompt tokens computed.", n_prompt_.load());
    counter("prompt_tokens_cached_total", "Prompt tokens found in the cache.",
            n_prompt_cached_.load());
    counter("prompt_seconds_total", "Time spent on prompts.", prompt_s_.load());
    counter("tokens_predicted_total", "Tokens generated.", n_predicted_.load());
    counter("tokens_predicted_seconds_total", "Time spent on generating.", predicted_s_.load());
    counter("n_decode_total", "Rounds of all answers: passes of the whole model.",
            n_decodes_.load());
    counter("n_tokens_max", "Most tokens of one conversation.", n_tokens_max_.load());
    const auto gauge = [&](const char* name, const char* help, auto value) {
        page.metric(std::string("llamacpp:") + name, "gauge", help, none, value);
    };
    gauge("prompt_tokens_seconds", "Prompt tokens per second since the last scrape.",
          rates.prompt_per_second);
    gauge("predicted_tokens_seconds", "Generated tokens per second since the last scrape.",
          rates.predicted_per_second);
    gauge("requests_processing", "Answers being generated.", gauges.n_running);
    gauge("requests_deferred", "Answers that wait for a session.", gauges.n_waiting);
    const auto n_decodes = static_cast<double>(n_decodes_.load());
    gauge("n_busy_slots_per_decode", "Answers under way, on average over rounds.",
          n_decodes > 0 ? static_cast<double>(n_busy_.load()) / n_decodes : 0.0);

    const std::string model = label("model_name", model_) + ",engine=\"0\"";
    for (const char* prefix : {"llamacpp:", "vllm:"}) {
        const std::string labels = prefix == std::string_view("vllm:") ? model : none;
        const std::string start = std::string(prefix) + "spec_decode_num_";
        page.metric(start + "drafts_total", "counter", "Drafts verified.", labels,
                    n_drafts_.load());
        page.metric(start + "draft_tokens_total", "counter", "Tokens drafted.", labels,
                    n_drafted_.load());
        page.metric(start + "accepted_tokens_total", "counter", "Drafted tokens accepted.", labels,
                    n_accepted_.load());
        page.declare(start + "accepted_tokens_per_pos_total", "counter",
                     "Accepted tokens by their position in the draft.");
        for (std::size_t i = 0; i < kPositions; ++i) {
            if (i == 0 || n_accepted_at_[i].load() > 0) {
                page.sample(
                    start + "accepted_tokens_per_pos_total",
                    labels + (labels.empty() ? "" : ",") + label("position", std::to_string(i)),
                    n_accepted_at_[i].load());
            }
        }
    }
    page.metric("vllm:prompt_tokens_total", "counter", "Prompt tokens, cached ones included.",
                model, n_prompt_.load() + n_prompt_cached_.load());
    page.metric("vllm:generation_tokens_total", "counter", "Tokens generated.", model,
                n_predicted_.load());
    page.declare("vllm:request_success_total", "counter", "Answers by the reason of their end.");
    for (const auto& [reason, n] : n_ended_) {
        page.sample("vllm:request_success_total", model + "," + label("finished_reason", reason),
                    n);
    }
    page.metric("vllm:num_requests_running", "gauge", "Answers being generated.", model,
                gauges.n_running);
    page.metric("vllm:num_requests_waiting", "gauge", "Answers that wait for a session.", model,
                gauges.n_waiting);
    page.metric("vllm:kv_cache_usage_perc", "gauge", "Share of the cache in use, 0 to 1.", model,
                gauges.cache_use);
    page.histogram("vllm:time_to_first_token_seconds", "From the request to its first token.",
                   model, first_token_s_);
    page.histogram("vllm:inter_token_latency_seconds", "Between tokens of an answer.", model,
                   token_gap_s_);
    page.histogram("vllm:e2e_request_latency_seconds", "From the request to its end.", model,
                   request_s_);
    page.histogram("vllm:request_queue_time_seconds", "Waiting for a session.", model, queue_s_);

    page.declare("knap:tokens_total", "counter", "Generated tokens by where they came from.");
    for (const auto& [labels, n] : n_by_origin_) {
        page.sample("knap:tokens_total",
                    label("strategy", labels.first) + "," + label("origin", labels.second), n);
    }
    const auto own = [&](const char* name, const char* help, auto value) {
        page.metric(std::string("knap:") + name, "counter", help, none, value);
    };
    own("draft_seconds_total", "Time spent on drafting.", draft_s_.load());
    own("verify_seconds_total", "Time spent on verifying.", verify_s_.load());
    own("search_seconds_total", "Time spent on searching plans.", search_s_.load());
    own("near_ties_total", "Tokens that rounding may have decided.", n_near_ties_.load());
    own("forced_tokens_total", "Tokens that a grammar left no choice about.", n_forced_.load());
    own("disconnects_total", "Clients that left before their answer was complete.",
        n_disconnects_.load());
    page.declare("knap:requests_refused_total", "counter", "Requests refused, by status.");
    for (const auto& [status, n] : n_refused_) {
        page.sample("knap:requests_refused_total", label("code", std::to_string(status)), n);
    }
    return page.str();
}

}  // namespace knap
