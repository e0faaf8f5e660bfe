// One request for text under way: its answers as they grow on session threads, and what the client
// sees of them. Everything after the start happens in order on the threads for short work.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer/answer.h"
#include "serve/answer/statistics.h"
#include "serve/http/exchange.h"
#include "serve/service.h"

namespace knap {

// A request that was read and checked.
struct CompletionPlan {
    std::unique_ptr<Answer> answer{};
    GenerationRequest generation{};
    std::vector<std::vector<Token>> prompts{};  // each is answered `n_choices` times
    bool ends_with_done = true;                 // a stream ends with "data: [DONE]"
};

class Completion : public std::enable_shared_from_this<Completion> {
  public:
    // Queues the answers and begins the stream, if one is wanted. Throws RequestError when the
    // request cannot be served; nothing has been sent then. `service` must outlive the answers.
    static void start(Service& service, std::shared_ptr<Exchange> exchange, CompletionPlan plan);

  private:
    using Clock = std::chrono::steady_clock;

    Completion(Service& service, std::shared_ptr<Exchange> exchange, CompletionPlan plan);

    // Calls `step` after those posted before, on a thread for short work. If it throws, the request
    // fails.
    void post(std::function<void()> step);
    void run(const std::function<void()>& step);
    std::vector<Job> jobs();
    Job job(int choice, const std::vector<Token>& prompt, const GenerateOptions& options);
    void begin();
    // Takes a part of an answer, on its session's thread.
    void gather(int choice, AnswerPart part);
    bool has_gathered();
    void add_gathered();
    void add(int choice, AnswerPart part, std::chrono::steady_clock::time_point time);
    void finish(int choice, JobEnd end);
    void finish_all();
    void send_progress(int choice, int done, int total);
    void send(Json chunk);                  // with the next flush()
    void add_event(std::string_view data);  // likewise
    void flush();
    void fail();
    void note_tokens(int choice,
                     const AnswerPart& part,
                     std::chrono::steady_clock::time_point time);
    void remember(const Result& result);
    void add_figures(Json& object, bool has_usage) const;
    Json round_json(const AnswerPart& part) const;

    struct Progress {
        int n_cached = -1;  // tokens of the prompt; -1: not known yet
        int n_tokens = 0;
        int n_drafted = 0;
        int n_accepted = 0;
        Clock::time_point first{};  // token
        Clock::time_point last{};
    };
    Json running_timings(const Progress& progress) const;

    // A part that no thread has been woken for yet.
    struct Gathered {
        int choice;
        AnswerPart part;
        Clock::time_point time;
    };

    Service& service_;
    std::shared_ptr<Exchange> exchange_;
    CompletionPlan plan_;
    SerialTasks tasks_;
    std::mutex gathered_mutex_;
    std::vector<Gathered> gathered_;
    Clock::time_point woken_{};  // when the last parts were passed on
    std::string outgoing_{};     // events to send together
    const Clock::time_point arrived_ = Clock::now();
    std::vector<std::shared_ptr<JobTicket>> tickets_;
    std::vector<Progress> progress_;      // by choice
    std::vector<ChoiceFigures> figures_;  // by choice
    int n_left_ = 0;                      // choices under way
    bool is_over_ = false;                // nothing more is sent
};

}  // namespace knap
