// What the server has done since it started, under the names that dashboards for llama.cpp and vLLM
// already know. Counted with atomics: neither counting nor reading waits for a pass.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "knap/types.h"

#include "serve/engine/histogram.h"
#include "serve/engine/job.h"
#include "serve/engine/metrics_page.h"

namespace knap {

// The state of the server at the moment of a scrape.
struct ServerGauges {
    int n_running = 0;
    int n_waiting = 0;
    double cache_use = 0;  // share of the cache's rows, 0..1
};

class Metrics {
  public:
    explicit Metrics(std::string model_name) : model_(std::move(model_name)) {}

    // A round of an answer, while `n_running` answers were under way.
    void add_part(const AnswerPart& part, std::string_view strategy, int n_running);
    void add_first_token(double seconds);  // since the request arrived
    void add_token_gap(double seconds);    // between tokens of an answer
    // An answer that has ended, `seconds` after its request arrived.
    void add_end(const JobEnd& end, std::string_view finish_reason, double seconds);
    void add_refusal(int status);
    void add_disconnect() { ++n_disconnects_; }
    void add_idle_work(double seconds) { idle_s_.fetch_add(seconds); }

    // Prometheus' text format 0.0.4. Rates are those since the last call.
    std::string text(const ServerGauges& gauges);

  private:
    using Counter = std::atomic<std::int64_t>;
    using Seconds = std::atomic<double>;
    static constexpr std::size_t kPositions = kMaxDraft;
    static std::vector<double> short_times();
    static std::vector<double> long_times();

    struct Rates {
        double prompt_per_second = 0;
        double predicted_per_second = 0;
    };
    Rates rates_since_last_call();
    void write_llamacpp(const ServerGauges& gauges, MetricsPage& page);
    void write_vllm(const ServerGauges& gauges, MetricsPage& page) const;
    void write_drafts(const std::string& prefix,
                      const std::string& labels,
                      MetricsPage& page) const;
    void write_own(MetricsPage& page) const;

    std::string model_;
    Counter n_prompt_ = 0;  // tokens computed
    Counter n_prompt_cached_ = 0;
    Counter n_predicted_ = 0;
    Seconds prompt_s_ = 0;
    Seconds predicted_s_ = 0;
    Counter n_decodes_ = 0;  // rounds
    Counter n_busy_ = 0;     // answers under way, summed over rounds
    Counter n_tokens_max_ = 0;
    Counter n_drafts_ = 0;
    Counter n_drafted_ = 0;
    Counter n_accepted_ = 0;
    std::array<Counter, kPositions> n_accepted_at_{};
    Counter n_near_ties_ = 0;
    Counter n_forced_ = 0;
    Counter n_disconnects_ = 0;
    Seconds draft_s_ = 0;
    Seconds verify_s_ = 0;
    Seconds search_s_ = 0;
    Seconds idle_s_ = 0;
    Histogram first_token_s_{long_times()};
    Histogram token_gap_s_{short_times()};
    Histogram request_s_{long_times()};
    Histogram queue_s_{long_times()};

    std::mutex mutex_;                                                         // of what follows
    std::map<std::string, std::int64_t> n_ended_;                              // by finish reason
    std::map<int, std::int64_t> n_refused_;                                    // by status
    std::map<std::pair<std::string, std::string>, std::int64_t> n_by_origin_;  // strategy, origin
    std::int64_t prompt_before_ = 0;  // at the last call of text()
    std::int64_t predicted_before_ = 0;
    double prompt_s_before_ = 0;
    double predicted_s_before_ = 0;
};

}  // namespace knap
