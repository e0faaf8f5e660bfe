// A minimal program that uses knap: loads a model and streams one completion.
//     example_minimal MODEL.gguf [PROMPT]
#include <exception>
#include <iostream>
#include <string_view>

#include "knap/knap.h"

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: example_minimal MODEL.gguf [PROMPT]\n";
        return 2;
    }
    const std::string_view prompt = argc > 2 ? argv[2] : "The first tools were made of";
    try {
        knap::Engine engine({.model_path = argv[1]});
        knap::Session session(engine);
        knap::Observer observer;
        observer.on_text = [](std::string_view text) { std::cout << text << std::flush; };

        std::cout << prompt;
        const knap::Result result =
            session.generate(engine.tokenize(prompt), {.n_predict = 64}, observer);
        std::cout << "\n";
        std::cerr << result.n_generated << " tokens, " << result.timings.tokens_per_second
                  << " per second\n";
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return 1;
    }
}
