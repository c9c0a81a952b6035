/* Runs the scheduler of llama.cpp's server, one update_slots() at a time.
 *
 *   llama_steps MODEL SLOTS CONTEXT N_BATCH N_UBATCH CONT_BATCHING CACHE_PROMPT SIMILARITY
 *
 * Standard input has a line a request: the index of the turn before it or -1, the step before which it arrives, new prompt
 * tokens, and output tokens. A later turn arrives so many steps after the end of the turn before.
 *
 * It prints a line for each step that computes something. That has the KV cells of those in it, then request:tokens:answers
 * of each, where answers is 1 when it gets a token. A last line "gave up REASON" says that a request did not get all its tokens.
 *
 * The server's own loop runs, with its queue, its slots and a model. The callback between two turns of the loop replaces the
 * clock and the network. The server's slots are private, so there are two lines about `private`. */
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#define private public
#include "server-context.cpp"
#undef private

namespace {

struct work {
    int before, step, prompt, output;
    int generated = 0, ended = -1, pauses = 0;
    bool came = false;
    llama_tokens text;
};

struct clock_of_steps {
    server_context_impl & server;
    std::vector<work> & todo;
    const llama_vocab * vocab;
    bool cache_prompt;
    std::mt19937 draw{1};
    int now = 0, pauses = 0;

    void post(int i) {
        work & w = todo[i];
        w.came = true;
        if (w.before >= 0) {
            w.text = todo[w.before].text;
        } else {
            w.text = {3 + i}; // no two sessions begin alike
        }
        for (int n = w.before < 0 ? 1 : 0; n < w.prompt; n++) {
            w.text.push_back(60 + (int) (draw() % 200));
        }
        server_task task(SERVER_TASK_TYPE_COMPLETION);
        task.id     = server.queue_tasks.get_new_id();
        task.index  = i;
        task.tokens = server_tokens(w.text, false);
        task.params.n_predict    = w.output;
        task.params.cache_prompt = cache_prompt;
        task.params.sampling.temp = 0;
        for (llama_token t = 0; t < llama_vocab_n_tokens(vocab); t++) {
            if (llama_vocab_is_eog(vocab, t)) {
                task.params.sampling.logit_bias.push_back({t, -INFINITY});
            }
        }
        server.queue_tasks.post(std::move(task));
    }

    // Who arrives before step `now`: new sessions, then later turns, who ended first and by number.
    std::vector<int> arrivals() {
        std::vector<std::array<int, 2>> come;
        for (int i = 0; i < (int) todo.size(); i++) {
            const work & w = todo[i];
            const int end = w.before < 0 ? 0 : todo[w.before].ended;
            if (!w.came && end >= 0 && end + w.step <= now) {
                come.push_back({w.before < 0 ? -1 : end, i});
            }
        }
        std::sort(come.begin(), come.end());
        std::vector<int> out;
        for (auto & c : come) {
            out.push_back(c[1]);
        }
        return out;
    }

    void stop(const char * why) {
        if (why != nullptr) {
            printf("gave up %s\n", why);
        }
        server.queue_tasks.terminate();
    }

    void step() {
        std::map<int, int> who; // slot -> request
        for (auto & slot : server.slots) {
            if (slot.is_processing()) {
                who[slot.id] = (int) slot.task->index;
            }
        }
        if (!who.empty()) {
            server.update_slots();
            std::map<int, std::array<int, 2>> did;
            for (auto & t : server.batch.tokens) {
                did[who.at(t.id_slot)][0]++;
                did[who.at(t.id_slot)][1] += t.output;
            }
            bool lost = server.batch.view.size() != server.batch.size();
            for (auto & [id, i] : who) {
                lost |= server.slots[id].prompt.tokens.empty() && server.slots[id].state != SLOT_STATE_STARTED;
            }
            if (lost) {
                stop("no room in the KV cache: the server cut the step up, or gave up all requests");
                return;
            }
            now++;
            int cells = 0;
            for (auto & [id, i] : who) {
                work & w = todo[i];
                const server_slot & slot = server.slots[id];
                cells += slot.state == SLOT_STATE_STARTED ? 0 : slot.prompt.n_tokens(); // else it is still another's
                w.generated += did.count(i) ? did[i][1] : 0;
                if (slot.is_processing()) {
                    continue;
                }
                w.ended = now;
                w.pauses = pauses;
                w.text = slot.prompt.tokens.get_text_tokens();
                w.text.push_back(slot.sampled);
            }
            printf("%d", cells);
            for (auto & [i, d] : did) {
                printf(" %d:%d:%d", i, d[0], d[1]);
            }
            printf("\n");
        }
        bool busy = false, left = false;
        for (auto & w : todo) {
            busy |= w.came && w.ended < 0;
            left |= !w.came;
        }
        if (!busy && !left) {
            stop(nullptr);
            return;
        }
        auto come = arrivals();
        while (!busy && come.empty()) {
            now++;
            come = arrivals();
        }
        if (!busy && come.size() > 1 && todo[come.back()].before >= 0) {
            stop("a turn and another request wake the machine: which is first, steps do not say");
            return;
        }
        // xpusim's steps take a moment more than a second, and a request after a pause starts on the whole second.
        for (int i : come) {
            const work & w = todo[i];
            if (w.before >= 0 && todo[w.before].ended + w.step == now && todo[w.before].pauses != pauses) {
                stop("a turn comes with a step: which is first, steps do not say");
                return;
            }
        }
        pauses += !busy && todo[come[0]].before < 0;
        for (int i : come) {
            post(i);
        }
    }
};

} // namespace

int main(int argc, char ** argv) {
    if (argc != 9) {
        return 2;
    }
    common_log_set_verbosity_thold(-1);
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();

    common_params params;
    params.model.path = argv[1];
    params.n_parallel = atoi(argv[2]);
    params.n_ctx      = atoi(argv[3]);
    params.n_batch    = atoi(argv[4]);
    params.n_ubatch   = atoi(argv[5]);
    params.cont_batching = atoi(argv[6]) != 0;
    params.kv_unified = true; // as where the number of slots is left to the server
    params.slot_prompt_similarity = (float) atof(argv[8]); // 0.1 is the server's default
    params.warmup     = false;
    params.fit_params = false;
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1;

    std::vector<work> todo;
    work w;
    while (std::cin >> w.before >> w.step >> w.prompt >> w.output) {
        todo.push_back(w);
    }
    server_context context;
    if (!context.load_model(params)) {
        fprintf(stderr, "llama_steps: %s does not load\n", argv[1]);
        return 1;
    }
    server_context_impl & server = *context.impl;
    clock_of_steps clock{server, todo, server.vocab, atoi(argv[7]) != 0};
    server.queue_tasks.on_update_slots([&]() { clock.step(); });
    for (int i : clock.arrivals()) {
        clock.post(i);
    }
    context.start_loop();
    return 0;
}
