// knap's public interface. An Engine holds a model on its devices; a Session holds one
// conversation: its KV cache and its history.
//
//     knap::Engine engine({.model_path = "model.gguf"});
//     knap::Session session(engine);
//     auto result = session.generate(engine.tokenize("Once upon a time"), {.n_predict = 64});
//
// Chats: chat.h turns messages into prompts.
//
// Errors. Bad input throws knap::Error. The message names the field at fault as it is initialised:
// "`.draft_max`: expected 0..64, found 99", "`.settings[plan]`: ...".
//
// Threads. Sessions of one Engine may run on different threads at the same time, one thread per
// session: their passes are computed together, and each text is the same as alone. When the cache
// lacks pages for all of them, the youngest request waits. Callbacks run on the thread that made
// the call, with one exception: Observer::is_cancelled is also polled from other threads.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap {

std::string_view version();                  // "MAJOR.MINOR.PATCH"
std::span<const StrategyInfo> strategies();  // plain decoding first

// Devices that can compute: GPUs, then the CPU, then those of `workers` ("host:port"). Connects to
// the workers to ask them; throws when one cannot be reached.
std::vector<DeviceInfo> devices(std::span<const std::string> workers = {});

// Sets the level and the sink of messages about loading and decoding, for the whole process. May be
// called from any thread, and so may `sink`. Without a sink, messages go to standard error as
// "knap: warning: ...".
void set_log(LogLevel level, LogSink sink = {});

class Engine {
  public:
    // Maps the model file and validates all of it. The first session reserves the cache for all.
    explicit Engine(RuntimeConfig config);
    ~Engine();
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;

    // The configuration in use: n_ctx, n_threads and devices are filled in.
    const RuntimeConfig& config() const;
    ModelInfo info() const;

    // `parse_special` turns "<|im_start|>" and the like into their ids. `add_bos` prepends the
    // beginning-of-sequence token if the model asks for one.
    std::vector<Token> tokenize(std::string_view text,
                                bool add_bos = true,
                                bool parse_special = false) const;
    // Raw bytes, which may end inside a UTF-8 character; special tokens are spelled out.
    std::string detokenize(std::span<const Token> tokens) const;

    // Whether every pass of the whole model is bit-identical to single-row passes, so that what is
    // drafted, and who else is served, cannot change a text even by rounding.
    bool is_batch_invariant() const;

    // The share of the cache that holds rows, of conversations or for reuse: 0..1. Any thread; does
    // not wait for a pass.
    double cache_use() const;

    struct Impl;

  private:
    friend struct ImplAccess;
    std::unique_ptr<Impl> impl_;
};

class Session {
  public:
    // Takes pages of the cache as it grows. The engine must outlive the session.
    explicit Session(Engine& engine);
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;

    // Continues `prompt`. Cache rows of the prefix that `prompt` shares with history() are reused;
    // only the rest is computed. Throws when the prompt is empty or longer than the context.
    //
    // What a strategy learns (measured costs, plans, thresholds) lasts from request to request. The
    // session keeps the strategies of the 4 most recent values of `options.speculation`.
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options = {},
                    const Observer& observer = {});

    // Throws what generate() would throw for this request before computing anything.
    void check(std::span<const Token> prompt, const GenerateOptions& options);

    // Every token of the conversation so far, prompt and answer.
    std::span<const Token> history() const;
    void reset();  // forgets the conversation; memory stays reserved
    // Forgets what strategies have learned: the next request starts with a new one.
    void forget_strategies();
    // The same, and takes up the costs and plans that are saved now (RuntimeConfig::profile).
    void renew_strategies();

    // Does one piece of the work that makes later requests faster and changes no text: the strategy
    // used last measures costs, or goes on with a search for plans on the conversation so far. For
    // while nobody waits, between requests, on the session's thread. A piece is a few passes, the
    // number of pieces is bounded until the conversation grows, and only free pages are used.
    // Returns whether more is worth doing; false also when cancelled (as by Observer::is_cancelled)
    // or while other sessions are busy.
    bool use_idle_time(const std::function<bool()>& is_cancelled = {});

    // Saves the cache rows of the latest prompt. Loading replaces the history; it checks the file
    // against the model and the cache types, and leaves the session unchanged when it throws. Like
    // a request, it waits while older ones need all of the cache.
    void save_prompt_cache(const std::filesystem::path& path) const;
    void load_prompt_cache(const std::filesystem::path& path);

    struct Impl;

  private:
    friend struct ImplAccess;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
