// knap's public face. An Engine holds a model on a device; a Session holds one conversation's cache
// and history.
//
//     knap::Engine engine({.model_path = "model.gguf"});
//     knap::Session session(engine);
//     auto result = session.generate(engine.tokenize("Once upon a time"), {.n_predict = 64});
//
// Bad input throws knap::Error. An Engine may be shared by several Sessions, used one at a time:
// they share its weights and its thread pool. Neither class may be used from two threads at once.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap {

std::string_view version();                  // "0.1.0"
std::span<const StrategyInfo> strategies();  // every way of drafting, plain decoding first
std::vector<DeviceInfo> devices();           // GPUs, then the CPU

class Engine {
  public:
    // Maps the model and checks all of it; a session reserves the rest.
    explicit Engine(RuntimeConfig config);
    ~Engine();
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;

    // The effective configuration: n_ctx, n_threads and device are filled in.
    const RuntimeConfig& config() const;
    ModelInfo info() const;

    // Text to ids. `parse_special` turns "<|im_start|>" and the like into their ids; `add_bos`
    // follows the model.
    std::vector<Token> tokenize(std::string_view text,
                                bool add_bos = true,
                                bool parse_special = false) const;
    std::string detokenize(
        std::span<const Token> tokens) const;  // raw bytes, special tokens spelled out

    // A conversation as the model's template writes it. `name` chooses another known template
    // ("chatml", ...); empty: the model's own. Throws when neither is known. `open_answer` ends
    // with the head of an assistant turn.
    std::string apply_chat_template(std::span<const ChatMessage> messages,
                                    std::string_view name = {},
                                    bool open_answer = true) const;
    bool has_chat_template() const;

    struct Impl;
    Impl& impl() const { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

class Session {
  public:
    explicit Session(Engine& engine);  // reserves the cache; the engine must outlive the session
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;

    // Continues `prompt`. Rows that the cache already holds for a common beginning of `prompt` and
    // history() are kept; only the rest is computed. Throws when the prompt is empty or longer than
    // the context.
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options = {},
                    const Observer& observer = {});

    // Every token of the conversation so far, prompt and answer.
    std::span<const Token> history() const;
    void reset();  // forgets everything; memory stays reserved

    // Saves the computed rows of the latest request's prompt; restores such a file, checked against
    // the model and the cache types, in place of the history. `load` leaves the session as it was
    // when it throws.
    void save_prompt_cache(const std::filesystem::path& path) const;
    void load_prompt_cache(const std::filesystem::path& path);

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
