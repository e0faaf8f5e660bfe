#include "serve/completion.h"

#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "serve/access.h"
#include "serve/api/error.h"

namespace knap {
namespace {

// How often a session looks whether a slow reader has caught up.
constexpr std::chrono::milliseconds kReaderPoll{5};

// Parts that come within this time of the last ones are sent together with the next. On a machine
// whose cores all compute, every thread that wakes, here and in the client, takes time from a pass.
constexpr std::chrono::milliseconds kGatherTime{20};

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

// vLLM's words for how an answer ended.
std::string ending_of(const JobEnd& end) {
    switch (end.outcome) {
        case JobOutcome::cancelled:
            return "abort";
        case JobOutcome::failed:
            return "error";
        default:
            return finish_reason(end);
    }
}

ApiError queue_full(const SessionPool& pool) {
    const std::chrono::milliseconds wait = pool.expected_wait();
    ApiError error = plain_error(429, "too many requests wait already; try again later");
    error.code = "queue_full";
    error.headers = {{"Retry-After", concat((wait.count() + 999) / 1000)},
                     {"retry-after-ms", concat(wait.count())}};
    return error;
}

}  // namespace

Completion::Completion(Service& service, std::shared_ptr<Exchange> exchange, CompletionPlan plan)
    : service_(service),
      exchange_(std::move(exchange)),
      plan_(std::move(plan)),
      tasks_(service.tasks) {
    n_left_ = static_cast<int>(plan_.prompts.size()) * plan_.generation.n_choices;
    progress_.resize(static_cast<std::size_t>(n_left_));
    figures_.resize(static_cast<std::size_t>(n_left_));
}

void Completion::start(Service& service, std::shared_ptr<Exchange> exchange, CompletionPlan plan) {
    plan.generation.options.references = service.memory.answers(key_of(exchange->request()));
    if (!plan.generation.prediction.empty()) {
        plan.generation.options.prediction =
            service.engine.tokenize(plan.generation.prediction, /*add_bos=*/false);
    }
    const std::shared_ptr<Completion> self(
        new Completion(service, std::move(exchange), std::move(plan)));
    std::vector<Job> jobs = self->jobs();
    try {
        for (std::size_t i = 0; i < jobs.size();
             i += static_cast<std::size_t>(self->plan_.generation.n_choices)) {
            service.pool.check(jobs[i]);
        }
    } catch (const Error& error) {
        throw RequestError(engine_error(error));
    }
    self->tickets_ = service.pool.submit(std::move(jobs));
    if (self->tickets_.empty()) {
        throw RequestError(queue_full(service.pool));
    }
    self->tasks_.start([self] { self->run([self] { self->begin(); }); });
    if (self->plan_.generation.streams) {
        // A part that nothing comes after is not held back for long.
        service.periodic.add([weak = std::weak_ptr(self)] {
            const auto completion = weak.lock();
            if (completion && completion->has_gathered()) {
                completion->post([completion] { completion->add_gathered(); });
            }
            return completion != nullptr;
        });
    }
    self->exchange_->on_gone([self] {
        self->service_.metrics.add_disconnect();
        log_info("request ", self->exchange_->request().id, ": 499, the client has left");
        for (const auto& ticket : self->tickets_) {
            self->service_.pool.cancel(ticket);
        }
    });
}

void Completion::post(std::function<void()> step) {
    tasks_.post([self = shared_from_this(), step = std::move(step)] { self->run(step); });
}

void Completion::run(const std::function<void()>& step) {
    try {
        step();
    } catch (const std::exception& error) {
        log_warning("request ", exchange_->request().id, " failed: ", error.what());
        fail();
    }
}

std::vector<Job> Completion::jobs() {
    std::vector<Job> jobs;
    for (std::size_t prompt = 0; prompt < plan_.prompts.size(); ++prompt) {
        GenerateOptions options = plan_.generation.options;
        for (int k = 0; k < plan_.generation.n_choices; ++k) {
            const int choice = static_cast<int>(jobs.size());
            figures_[jobs.size()].prompt = static_cast<int>(prompt);
            jobs.push_back(job(choice, plan_.prompts[prompt], options));
            ++options.sampling.seed;
        }
    }
    return jobs;
}

Job Completion::job(int choice, const std::vector<Token>& prompt, const GenerateOptions& options) {
    const std::shared_ptr<Completion> self = shared_from_this();
    Job job{.prompt = prompt,
            .options = options,
            .deadline = arrived_ + service_.config.timeout,
            .on_part =
                [self, choice](AnswerPart part) {
                    self->service_.metrics.add_part(
                        part, self->plan_.generation.options.speculation.strategy,
                        self->service_.pool.n_running());
                    self->gather(choice, std::move(part));
                },
            .wait_for_reader =
                [self](const std::function<bool()>& gives_up) {
                    while (self->exchange_->is_backlogged() && !gives_up()) {
                        std::this_thread::sleep_for(kReaderPoll);
                    }
                },
            .on_end =
                [self, choice](JobEnd end) {
                    self->post([raw = self.get(), choice, end = std::move(end)]() mutable {
                        raw->finish(choice, std::move(end));
                    });
                }};
    if (plan_.generation.streams && plan_.generation.reports_progress) {
        job.on_progress = [self, choice](int done, int total) {
            self->post([raw = self.get(), choice, done, total] {
                raw->send_progress(choice, done, total);
            });
        };
    }
    return job;
}

void Completion::begin() {
    if (!plan_.generation.streams) {
        return;
    }
    exchange_->begin_stream(
        {.status = 200,
         .content_type = "text/event-stream",
         .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
    for (int choice = 0; choice < n_left_; ++choice) {
        for (const Json& chunk : plan_.answer->begin(choice)) {
            send(chunk);
        }
    }
    flush();
}

void Completion::gather(int choice, AnswerPart part) {
    const Clock::time_point now = Clock::now();
    {
        const std::lock_guard lock(gathered_mutex_);
        gathered_.push_back({choice, std::move(part), now});
        if (!plan_.generation.streams || now < woken_ + kGatherTime) {
            return;
        }
        woken_ = now;
    }
    post([this] { add_gathered(); });
}

bool Completion::has_gathered() {
    const std::lock_guard lock(gathered_mutex_);
    return !gathered_.empty();
}

void Completion::add_gathered() {
    std::vector<Gathered> gathered;
    {
        const std::lock_guard lock(gathered_mutex_);
        gathered.swap(gathered_);
    }
    for (Gathered& one : gathered) {
        add(one.choice, std::move(one.part), one.time);
    }
    flush();
}

void Completion::add(int choice, AnswerPart part, Clock::time_point time) {
    if (is_over_) {
        return;
    }
    note_tokens(choice, part, time);
    Json round = plan_.generation.wants_rounds ? round_json(part) : Json();
    std::vector<Json> chunks = plan_.answer->add(choice, std::move(part));
    // A round whose text is held back, as part of a character is, has no chunk to ride on.
    if (chunks.empty() && !round.is_null()) {
        chunks.push_back(plan_.answer->empty_chunk());
    }
    for (std::size_t i = 0; plan_.generation.streams && i < chunks.size(); ++i) {
        if (!round.is_null()) {
            chunks[i]["knap"] = std::exchange(round, nullptr);
        }
        if (plan_.generation.reports_timings) {
            chunks[i]["timings"] = running_timings(progress_[static_cast<std::size_t>(choice)]);
        }
        send(std::move(chunks[i]));
    }
}

void Completion::note_tokens(int choice, const AnswerPart& part, Clock::time_point time) {
    Progress& progress = progress_[static_cast<std::size_t>(choice)];
    const int n_tokens = static_cast<int>(part.tokens.size());
    if (n_tokens == 0) {
        return;
    }
    if (progress.n_tokens == 0) {
        progress.first = time;
        service_.metrics.add_first_token(seconds_between(arrived_, time));
    } else {
        for (int i = 0; i < n_tokens; ++i) {
            service_.metrics.add_token_gap(seconds_between(progress.last, time) / n_tokens);
        }
    }
    progress.last = time;
    progress.n_tokens += n_tokens;
    progress.n_drafted += part.n_drafted;
    progress.n_accepted += part.n_accepted;
}

Json Completion::running_timings(const Progress& progress) const {
    const double seconds = seconds_between(progress.first, progress.last);
    return {{"predicted_n", progress.n_tokens},
            {"predicted_ms", 1000 * seconds},
            {"predicted_per_second", seconds > 0 ? (progress.n_tokens - 1) / seconds : 0.0},
            {"draft_n", progress.n_drafted},
            {"draft_n_accepted", progress.n_accepted}};
}

// Where the tokens of a chunk came from.
Json Completion::round_json(const AnswerPart& part) const {
    Json tokens = Json::array();
    for (const AnswerToken& token : part.tokens) {
        const bool is_drafted = token.origin == TokenOrigin::accepted;
        tokens.push_back({{"text", service_.piece(token.token)}, {"drafted", is_drafted}});
    }
    return {{"source", to_string(part.source)},
            {"plan", part.plan},
            {"n_drafted", part.n_drafted},
            {"n_accepted", part.n_accepted},
            {"tokens", std::move(tokens)}};
}

void Completion::send_progress(int choice, int done, int total) {
    if (is_over_) {
        return;
    }
    Progress& progress = progress_[static_cast<std::size_t>(choice)];
    if (progress.n_cached < 0) {
        progress.n_cached = done;
    }
    Json chunk = plan_.answer->empty_chunk();
    const double ms = 1000 * seconds_between(arrived_, Clock::now());
    chunk["prompt_progress"] = {{"index", choice},
                                {"total", total},
                                {"cache", progress.n_cached},
                                {"processed", done},
                                {"time_ms", ms}};
    send(chunk);
    flush();
}

void Completion::send(Json chunk) {
    if (plan_.generation.includes_usage && !chunk.contains("usage")) {
        chunk["usage"] = nullptr;
    }
    add_event(to_text(chunk));
}

// By appending: a stream object for every chunk would cost more than the chunk.
void Completion::add_event(std::string_view data) {
    outgoing_.append("data: ").append(data).append("\n\n");
}

void Completion::flush() {
    if (!outgoing_.empty()) {
        exchange_->send(std::exchange(outgoing_, {}));
    }
}

void Completion::finish(int choice, JobEnd end) {
    add_gathered();
    const auto index = static_cast<std::size_t>(choice);
    std::vector<Json> chunks;
    if (end.outcome == JobOutcome::failed) {
        fail();
    } else if (end.outcome == JobOutcome::cancelled) {
        is_over_ = true;
    } else if (!is_over_) {
        add(choice, std::exchange(end.rest, {}), Clock::now());
        chunks = plan_.answer->finish(choice, end);
    }
    service_.metrics.add_end(end, ending_of(end), seconds_between(arrived_, Clock::now()));
    if (end.outcome == JobOutcome::done) {
        remember(end.result);
    }
    const std::string reasoning = plan_.answer->reasoning(choice);
    figures_[index].n_reasoning =
        reasoning.empty() ? 0 : static_cast<int>(service_.engine.tokenize(reasoning, false).size());
    figures_[index].queue_ms = end.queue_ms;
    figures_[index].result = std::move(end.result);
    --n_left_;
    log_info("request ", exchange_->request().id, " answer ", choice, ": ",
             figures_[index].result.n_prompt, " + ", figures_[index].result.n_generated,
             " tokens, ", figures_[index].result.speculation.n_accepted, " of ",
             figures_[index].result.speculation.n_drafted, " drafts accepted");
    if (is_over_) {
        flush();
        return;
    }
    for (std::size_t i = 0; plan_.generation.streams && i < chunks.size(); ++i) {
        const bool is_last = n_left_ == 0 && i + 1 == chunks.size();
        if (is_last && !plan_.generation.includes_usage) {
            add_figures(chunks[i], /*has_usage=*/false);
        }
        send(chunks[i]);
    }
    if (n_left_ == 0) {
        finish_all();
    }
    flush();
}

void Completion::remember(const Result& result) {
    service_.memory.add(key_of(exchange_->request()), result.tokens);
}

void Completion::finish_all() {
    if (!plan_.generation.streams) {
        Json whole = plan_.answer->whole();
        if (whole.is_array()) {
            for (std::size_t i = 0; i < whole.size(); ++i) {
                whole[i]["timings"] = timings_json({figures_[i]});
            }
        } else {
            add_figures(whole, /*has_usage=*/true);
        }
        std::string text = to_text(whole);
        is_over_ = true;
        exchange_->respond({.body = std::move(text)});
        return;
    }
    if (plan_.generation.includes_usage) {
        Json last = plan_.answer->empty_chunk();
        add_figures(last, /*has_usage=*/true);
        send(last);
    }
    if (plan_.ends_with_done) {
        add_event("[DONE]");
    }
    flush();
    is_over_ = true;
    exchange_->end_stream();
}

void Completion::add_figures(Json& object, bool has_usage) const {
    if (has_usage) {
        object["usage"] = usage_json(figures_, !plan_.generation.prediction.empty());
    }
    object["timings"] = timings_json(figures_);
    object["knap"] =
        speculation_json(figures_, plan_.generation.ignored, plan_.generation.wants_decisions);
}

// One answer failed: the request ends, and with it the others.
void Completion::fail() {
    if (std::exchange(is_over_, true)) {
        return;
    }
    for (const auto& ticket : tickets_) {
        service_.pool.cancel(ticket);
    }
    const ApiError error = plain_error(500, "the answer could not be computed");
    service_.metrics.add_refusal(error.status);
    if (plan_.generation.streams) {
        add_event(to_text(to_json(error)));
        flush();
        exchange_->break_stream();
    } else {
        exchange_->respond({.status = error.status, .body = to_text(to_json(error))});
    }
}

}  // namespace knap
