#include "tools/measure/load/session_load.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace knap {
namespace {

constexpr std::chrono::milliseconds kPollInterval(1);

class Load {
  public:
    Load(std::span<const LoadRequest> requests, const LoadObserver& observer, std::ptrdiff_t n)
        : requests_(requests), observer_(observer), served_(requests.size()), start_(n) {}

    std::vector<ServedRequest> run(std::span<Session> sessions) {
        std::vector<std::thread> threads;
        for (Session& session : sessions) {
            threads.emplace_back([this, &session] { work(session); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        if (error_) {
            std::rethrow_exception(error_);
        }
        return std::move(served_);
    }

  private:
    void work(Session& session) {
        start_.arrive_and_wait();
        std::call_once(started_, [this] { watch_.emplace(); });
        try {
            for (std::size_t i = next_++; i < requests_.size() && !is_cancelled(); i = next_++) {
                answer(session, i);
            }
        } catch (...) {
            const std::scoped_lock lock(mutex_);
            error_ = error_ ? error_ : std::current_exception();
            has_failed_ = true;
        }
    }

    void answer(Session& session, std::size_t i) {
        while (requests_[i].may_start && !requests_[i].may_start() && !is_cancelled()) {
            std::this_thread::sleep_for(kPollInterval);
        }
        session.reset();  // a conversation of its own, whatever this session served before
        if (requests_[i].has_fresh_strategies) {
            session.forget_strategies();
        }
        TokenTimes& times = served_[i].times;
        const auto note_token = [&](const TokenEvent&) {
            times.token_ms.push_back(watch_->elapsed_ms());
            if (observer_.on_token) {
                observer_.on_token(i);
            }
        };
        times.start_ms = watch_->elapsed_ms();
        served_[i].result = session.generate(
            requests_[i].prompt, requests_[i].options,
            {.on_token = note_token, .is_cancelled = [this] { return is_cancelled(); }});
        if (observer_.on_done) {
            const std::scoped_lock lock(mutex_);
            observer_.on_done(i);
        }
    }

    bool is_cancelled() const {
        return has_failed_ || (observer_.is_cancelled && observer_.is_cancelled());
    }

    std::span<const LoadRequest> requests_;
    const LoadObserver& observer_;
    std::vector<ServedRequest> served_;
    std::latch start_;
    std::once_flag started_;
    std::optional<Stopwatch> watch_;  // runs from the moment that all threads are there
    std::atomic<std::size_t> next_ = 0;
    std::mutex mutex_;
    std::exception_ptr error_;  // the first one
    std::atomic<bool> has_failed_ = false;
};

}  // namespace

std::vector<ServedRequest> serve(std::span<Session> sessions,
                                 std::span<const LoadRequest> requests,
                                 const LoadObserver& observer) {
    return Load(requests, observer, static_cast<std::ptrdiff_t>(sessions.size())).run(sessions);
}

std::vector<TokenTimes> times_of(std::span<const ServedRequest> served) {
    std::vector<TokenTimes> times;
    for (const ServedRequest& one : served) {
        times.push_back(one.times);
    }
    return times;
}

void warm_up(std::span<Session> sessions, std::span<const Token> text) {
    constexpr int kFewTokens = 4;
    const LoadRequest request{
        .prompt = text,
        .options = {.n_predict = kFewTokens, .speculation = plain_decoding(), .ignore_eos = true}};
    serve(sessions, std::vector<LoadRequest>(sessions.size(), request));
}

std::vector<Session> open_sessions(Engine& engine, int n_sessions) {
    std::vector<Session> sessions;
    for (int i = 0; i < n_sessions; ++i) {
        sessions.emplace_back(engine);
    }
    return sessions;
}

void load_again(Engine& engine) {
    RuntimeConfig config = engine.config();
    config.on_load_progress = {};
    // The old engine goes first: two may not fit.
    { const Engine old = std::move(engine); }
    engine = Engine(std::move(config));
}

}  // namespace knap
