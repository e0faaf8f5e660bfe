#include "serve/engine/session_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace knap {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed_ms(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

AnswerToken copy_of(const TokenEvent& event) {
    return {.token = event.token,
            .origin = event.origin,
            .logprob = event.logprob,
            .top = {event.top.begin(), event.top.end()}};
}

}  // namespace

JobTicket::JobTicket(Job job_to_run, std::uint64_t number_of_job)
    : number(number_of_job), job_(std::move(job_to_run)) {}

SessionPool::SessionPool(Engine& engine, int n_sessions, int n_queue)
    : n_queue_(static_cast<std::size_t>(n_queue)), check_session_(engine) {
    for (int i = 0; i < n_sessions; ++i) {
        workers_.push_back(std::make_unique<Worker>(engine));
        workers_.back()->state.id = i;
    }
    try {
        for (const auto& worker : workers_) {
            worker->thread = std::thread([this, &worker = *worker] { serve(worker); });
        }
    } catch (...) {
        stop();
        throw;
    }
}

void SessionPool::stop() {
    std::deque<std::shared_ptr<JobTicket>> waiting;
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        waiting.swap(queue_);
        n_waiting_ = 0;
        for (const auto& worker : workers_) {
            if (worker->assigned != nullptr) {
                worker->assigned->is_cancelled_ = true;
            }
        }
    }
    has_work_.notify_all();
    for (const auto& ticket : waiting) {
        end_unstarted(*ticket, JobOutcome::cancelled);
    }
    for (const auto& worker : workers_) {
        if (worker->thread.joinable()) {
            worker->thread.join();
        }
    }
}

void SessionPool::check(const Job& job) {
    const std::lock_guard lock(check_mutex_);
    check_session_.check(job.prompt, job.options);
}

std::vector<std::shared_ptr<JobTicket>> SessionPool::submit(std::vector<Job> jobs) {
    std::vector<std::shared_ptr<JobTicket>> tickets;
    const std::lock_guard lock(mutex_);
    const auto n_idle = static_cast<std::size_t>(std::ranges::count_if(
        workers_, [](const auto& worker) { return worker->assigned == nullptr; }));
    if (is_stopping_ || queue_.size() + jobs.size() > n_queue_ + n_idle) {
        return tickets;
    }
    for (Job& job : jobs) {
        tickets.push_back(std::make_shared<JobTicket>(std::move(job), ++n_submitted_));
        queue_.push_back(tickets.back());
    }
    assign();
    return tickets;
}

void SessionPool::cancel(const std::shared_ptr<JobTicket>& ticket) {
    ticket->is_cancelled_ = true;
    end_waiting(ticket, JobOutcome::cancelled);
}

void SessionPool::expire_waiting() {
    const Clock::time_point now = Clock::now();
    std::vector<std::shared_ptr<JobTicket>> overdue;
    {
        const std::lock_guard lock(mutex_);
        std::ranges::copy_if(queue_, std::back_inserter(overdue),
                             [&](const auto& ticket) { return ticket->job_.deadline <= now; });
    }
    for (const auto& ticket : overdue) {
        end_waiting(ticket, JobOutcome::expired);
    }
}

// Takes a job out of the queue; does nothing for one that has left it.
void SessionPool::end_waiting(const std::shared_ptr<JobTicket>& ticket, JobOutcome outcome) {
    {
        const std::lock_guard lock(mutex_);
        const auto at = std::ranges::find(queue_, ticket);
        if (at == queue_.end()) {
            return;
        }
        queue_.erase(at);
        n_waiting_ = static_cast<int>(queue_.size());
    }
    end_unstarted(*ticket, outcome);
}

void SessionPool::end_unstarted(JobTicket& ticket, JobOutcome outcome) {
    end_job(ticket, {.outcome = outcome, .queue_ms = elapsed_ms(ticket.submitted_)});
}

// Drops the job with its callbacks, which may own the holder of the ticket.
void SessionPool::end_job(JobTicket& ticket, JobEnd end) {
    const Job job = std::exchange(ticket.job_, {});
    job.on_end(std::move(end));
}

void SessionPool::assign() {
    while (!queue_.empty()) {
        Worker* worker = best_idle_worker(queue_.front()->job_.prompt);
        if (worker == nullptr) {
            break;
        }
        worker->assigned = std::move(queue_.front());
        queue_.pop_front();
        ++n_running_;
        has_work_.notify_all();
    }
    n_waiting_ = static_cast<int>(queue_.size());
}

// The idle session whose conversation has most in common with the prompt. Where devices share rows
// this hardly matters; where they do not, it saves the whole prompt.
SessionPool::Worker* SessionPool::best_idle_worker(const std::vector<Token>& prompt) {
    Worker* best = nullptr;
    std::ptrdiff_t most = -1;
    for (const auto& worker : workers_) {
        if (worker->assigned != nullptr) {
            continue;
        }
        const auto end = std::ranges::mismatch(worker->history, prompt).in1;
        const std::ptrdiff_t n_common = end - worker->history.begin();
        if (n_common > most) {
            most = n_common;
            best = worker.get();
        }
    }
    return best;
}

void SessionPool::serve(Worker& worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
        has_work_.wait(lock, [&] { return is_stopping_ || worker.assigned != nullptr; });
        if (worker.assigned == nullptr) {
            return;
        }
        const std::shared_ptr<JobTicket> ticket = worker.assigned;
        worker.state = {.id = worker.state.id,
                        .is_processing = true,
                        .job = ticket->number,
                        .n_prompt = static_cast<int>(ticket->job_.prompt.size()),
                        .strategy = ticket->job_.options.speculation.strategy};
        const bool needs_renewal = std::exchange(worker.needs_renewal, false);
        lock.unlock();
        std::unique_lock use(worker.in_use);
        if (needs_renewal) {
            worker.session.renew_strategies();
        }
        const Clock::time_point start = Clock::now();
        JobEnd end = run(worker, *ticket);
        use.unlock();
        lock.lock();
        note_duration(Clock::now() - start);
        worker.history.assign(worker.session.history().begin(), worker.session.history().end());
        worker.state.is_processing = false;
        worker.assigned.reset();
        --n_running_;
        if (!is_stopping_) {
            assign();
        }
        // Last: whoever hears that an answer is complete may count on its session being free.
        lock.unlock();
        end_job(*ticket, std::move(end));
        lock.lock();
    }
}

JobEnd SessionPool::run(Worker& worker, JobTicket& ticket) {
    JobEnd end{.queue_ms = elapsed_ms(ticket.submitted_)};
    try {
        end.result = generate(worker, ticket, end.rest);
        if (end.result.stop == StopReason::cancelled) {
            end.outcome = ticket.is_cancelled_ ? JobOutcome::cancelled : JobOutcome::expired;
        }
    } catch (const std::exception& error) {
        end.outcome = JobOutcome::failed;
        log_warning("answer ", ticket.number, " failed: ", error.what());
    }
    return end;
}

Result SessionPool::generate(Worker& worker, JobTicket& ticket, AnswerPart& part) {
    const Job& job = ticket.job_;
    return worker.session.generate(job.prompt, job.options, observe(worker, ticket, part));
}

// Collects the tokens and the text of a round in `part`, and passes them on when it is over.
Observer SessionPool::observe(Worker& worker, JobTicket& ticket, AnswerPart& part) {
    const auto is_over = [&ticket] {
        return ticket.is_cancelled_ || Clock::now() >= ticket.job_.deadline;
    };
    Observer observer;
    observer.on_text = [&part](std::string_view text) { part.text += text; };
    observer.on_token = [&part](const TokenEvent& event) { part.tokens.push_back(copy_of(event)); };
    observer.is_cancelled = is_over;
    observer.on_prefill = [this, &worker, &ticket](int done, int total) {
        {
            const std::lock_guard lock(mutex_);
            worker.state.n_prompt_done = done;
        }
        if (ticket.job_.on_progress) {
            ticket.job_.on_progress(done, total);
        }
    };
    observer.on_round = [this, &worker, &ticket, &part, is_over](const RoundEvent& round) {
        {
            const std::lock_guard lock(mutex_);
            worker.state.n_generated += round.n_tokens;
        }
        part.source = round.source;
        part.plan = round.plan;
        part.n_drafted = round.n_drafted;
        part.n_accepted = round.n_accepted;
        ticket.job_.on_part(std::exchange(part, {}));
        if (ticket.job_.wait_for_reader) {
            ticket.job_.wait_for_reader(is_over);
        }
    };
    return observer;
}

std::vector<SessionState> SessionPool::sessions() const {
    const std::lock_guard lock(mutex_);
    std::vector<SessionState> states;
    for (const auto& worker : workers_) {
        states.push_back(worker->state);
    }
    return states;
}

std::vector<Token> SessionPool::longest_history() const {
    const std::lock_guard lock(mutex_);
    const auto longest = std::ranges::max_element(
        workers_, {}, [](const auto& worker) { return worker->history.size(); });
    return (*longest)->history;
}

// What strategies learn before they are renewed is lost, so they learn nothing then.
bool SessionPool::is_free(const Worker& worker) const {
    const std::lock_guard lock(mutex_);
    return worker.assigned == nullptr && !worker.needs_renewal;
}

bool SessionPool::use_idle_time(const std::function<bool()>& must_stop) {
    return !must_stop() && std::ranges::any_of(workers_, [&](const auto& worker) {
        const std::unique_lock use(worker->in_use, std::try_to_lock);
        return use.owns_lock() && is_free(*worker) && worker->session.use_idle_time(must_stop);
    });
}

void SessionPool::renew_strategies() {
    const std::lock_guard lock(mutex_);
    for (const auto& worker : workers_) {
        worker->needs_renewal = true;
    }
}

void SessionPool::note_duration(std::chrono::duration<double> duration) {
    constexpr double kShare = 0.2;
    mean_seconds_ += kShare * (duration.count() - mean_seconds_);
}

std::chrono::milliseconds SessionPool::expected_wait() const {
    const std::lock_guard lock(mutex_);
    const double n_turns =
        static_cast<double>(queue_.size() + 1) / static_cast<double>(workers_.size());
    return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * n_turns * mean_seconds_));
}

}  // namespace knap
