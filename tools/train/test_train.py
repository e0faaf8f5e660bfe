"""Tests of the training scripts at toy sizes. Run python3 -m unittest in this folder."""

import itertools
import random
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch

import corpus
import export
import gguf_weights
import kangaroo
import twins
import vocab
from llama import KeyValues, Layer, Llama, LlamaConfig, initialise, rotate, rotation
from training import schedule

TOY = LlamaConfig(
    n_vocab=259, n_layers=3, d_model=64, n_heads=4, n_kv_heads=2, d_ff=96, n_context=32, rms_eps=1e-5
)


def toy_model(config=TOY):
    torch.manual_seed(3)
    model = Llama(config)
    initialise(model, std=0.3)
    return model.eval()


class LlamaTest(unittest.TestCase):
    def test_rotation_pairs_halves_of_a_head(self):
        x = torch.zeros(1, 1, 1, 16)
        x[..., 0] = 1
        rotated = rotate(x, rotation(TOY, torch.tensor([1])))[0, 0, 0]
        self.assertEqual(rotated.nonzero()[:, 0].tolist(), [0, 8])
        self.assertAlmostEqual(rotated[8].item(), 0.84147, places=4)

    def test_reordered_rows_give_the_same_scores(self):
        torch.manual_seed(0)
        q, k = torch.randn(2, 64, 64)
        x = torch.randn(2, 64)
        cos, sin = rotation(TOY, torch.arange(2))

        def neighbours(y):
            first, second = y.unflatten(-1, (4, 8, 2)).unbind(-1)
            c, s = cos[:, None], sin[:, None]
            return torch.stack((first * c - second * s, second * c + first * s), dim=-1).flatten(2)

        def halves(y):
            return rotate(y.unflatten(-1, (4, 16)).transpose(0, 1)[None], (cos, sin))[0].transpose(0, 1)

        reordered = [gguf_weights.halves_from_neighbours(w, 4) for w in (q, k)]
        expected = torch.einsum("ihd,jhd->hij", neighbours(x @ q.T), neighbours(x @ k.T))
        found = torch.einsum("ihd,jhd->hij", *(halves(x @ w.T) for w in reordered))
        torch.testing.assert_close(found, expected)

    def test_reordering_is_inverted_exactly(self):
        weight = torch.arange(64 * 3.0).reshape(64, 3)
        there = gguf_weights.neighbours_from_halves(weight, 4)
        self.assertFalse(torch.equal(there, weight))
        torch.testing.assert_close(gguf_weights.halves_from_neighbours(there, 4), weight)

    def test_steps_give_the_same_logits_as_a_batch(self):
        model, tokens = toy_model(), torch.tensor([[5, 250, 7, 7, 100]])
        with torch.no_grad():
            whole = model.logits(model.streams(tokens)[-1])[0]
            caches = model.new_caches(1, 8)
            steps = torch.cat([model.step(token, caches) for token in tokens.T])
        torch.testing.assert_close(steps, whole)

    def test_a_dropped_layer_is_skipped_only_for_its_sequence(self):
        model, keep = toy_model(), torch.ones(3, 2, 2)
        keep[1, :, 0] = 0
        streams = model.streams(torch.tensor([[1, 2, 3], [1, 2, 3]]), keep)
        torch.testing.assert_close(streams[2][0], streams[1][0])
        self.assertFalse(torch.allclose(streams[2][1], streams[1][1]))

    def test_modules_are_dropped_one_by_one(self):
        model, keep = toy_model(), torch.ones(3, 2, 1)
        keep[1, 0] = keep[2, 1] = 0
        angles = rotation(TOY, torch.arange(3))
        with torch.no_grad():
            streams = model.streams(torch.tensor([[1, 2, 3]]), keep)
            torch.testing.assert_close(streams[2], streams[1] + model.blk[1].mlp(streams[1]))
            torch.testing.assert_close(streams[3], model.blk[2].attend(streams[2], angles))

    def test_all_layers_share_a_compiled_graph(self):
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward

        def try_step(run):
            model.logits(model.streams(torch.tensor([[1, 2, 3]]), torch.ones(3, 2, 1), run)[-1]).sum().backward()

        model, compile_with = toy_model(), torch.compile
        with mock.patch("torch.compile", lambda f, **options: compile_with(f, backend=backend, **options)):
            run = twins.compile_layers("toy", try_step)
        self.assertIsNot(run, Layer.forward)
        self.assertEqual(len(graphs), 1)

    def test_layers_run_as_they_are_if_compilation_fails(self):
        def fail(run):
            raise RuntimeError("no compiler")

        self.assertIs(twins.compile_layers("toy", fail), Layer.forward)

    def test_a_cache_returns_the_rows_added(self):
        cache = KeyValues(TOY, batch=1, capacity=4, like=torch.zeros(1))
        rows = torch.randn(2, 1, 2, 1, 16)
        for row in rows:
            keys, values = cache.append(row, 2 * row)
        torch.testing.assert_close(keys, torch.cat(list(rows), dim=2))
        torch.testing.assert_close(values, 2 * keys)


class RecipeTest(unittest.TestCase):
    def test_dropout_grows_exponentially_with_depth_and_time(self):
        rates = twins.dropout_rates(5, 0.1, progress=1.0)
        self.assertEqual(rates[0], 0)
        self.assertAlmostEqual(rates[2], 0.1 * (2**0.5 - 1))
        self.assertAlmostEqual(rates[4], 0.1)
        self.assertEqual(max(twins.dropout_rates(5, 0.1, progress=0.0)), 0)

    def test_exit_weights_grow_with_depth_and_add_up_to_one(self):
        weights = twins.exit_weights(4, scale=1.0)
        for found, expected in zip(weights, [0, 1 / 10, 3 / 10, 6 / 10]):
            self.assertAlmostEqual(found, expected)

    def test_layers_are_dropped_at_their_rate(self):
        keep = twins.keep_layers([0.0, 0.25, 1.0], 4000, torch.Generator().manual_seed(1))
        self.assertTrue(torch.equal(keep[:, 0], keep[:, 1]))
        kept = keep[:, 0].mean(dim=1)
        self.assertEqual((kept[0].item(), kept[2].item()), (1, 0))
        self.assertAlmostEqual(kept[1].item(), 0.75, delta=0.03)

    def test_modules_are_dropped_at_the_rate_of_their_sequence(self):
        keep = twins.keep_modules(200, 2000, 0.6, 0.25, torch.Generator().manual_seed(1))
        self.assertTrue(keep[0].all() and keep[-1].all())
        rates = 1 - keep[1:-1].flatten(0, 1).mean(dim=0)
        self.assertAlmostEqual((rates == 0).float().mean().item(), 0.25, delta=0.03)
        self.assertAlmostEqual(rates[rates > 0].mean().item(), 0.3, delta=0.02)
        self.assertLess(rates.max().item(), 0.75)
        # Attention and MLP of a layer are independent given the rate.
        most = keep[1:-1, :, rates > 0.55]
        self.assertAlmostEqual((most[:, 0] == most[:, 1]).float().mean().item(), 0.51, delta=0.04)

    def test_the_rate_rises_and_falls(self):
        factors = [factor for _, _, factor in schedule(10, 4)]
        self.assertEqual(len(factors), 10)
        self.assertEqual(factors[:5], [0.25, 0.5, 0.75, 1, 1])
        self.assertEqual(factors[4:], sorted(factors[4:], reverse=True))

    def test_a_budget_of_seconds_ends_decayed_at_any_speed(self):
        for pace in (0.01, 0.4, 3.0):
            seconds = itertools.count(100, pace)
            found = list(schedule(5, 4, seconds=20, clock=lambda: next(seconds)))
            shares, factors = [f[1] for f in found], [f[2] for f in found]
            self.assertEqual(shares, sorted(shares))
            self.assertGreater(shares[-1] + 1.1 * pace / 20, 1)
            self.assertEqual(max(factors), 1)
            self.assertLess(factors[-1], 0.1)

    def test_the_context_grows_at_the_same_number_of_bytes(self):
        options = SimpleNamespace(batch=8, context=8192, short_context=1024, short_share=0.6)
        self.assertEqual(twins.stages(options), [(0.6, 64, 1024), (1.0, 8, 8192)])
        options.short_context = None
        self.assertEqual(twins.stages(options), [(1.0, 8, 8192)])


class EvaluationTest(unittest.TestCase):
    def test_versions_skip_their_share_but_never_the_ends(self):
        generator = torch.Generator().manual_seed(1)
        for columns, n_skipped in (((0, 1), 12), ((0,), 6), ((1,), 6)):
            keep = twins.skip_at_random(24, columns, 0.25, generator)
            self.assertEqual(int((keep == 0).sum()), n_skipped)
            self.assertTrue(keep[[0, -1]].all())
            self.assertTrue(keep[:, [c for c in (0, 1) if c not in columns]].all())

    def test_windows_are_cut_with_their_targets(self):
        inputs, targets = twins.cut(torch.arange(9)[None], 3)
        self.assertEqual(inputs.tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(targets.tolist(), [[1, 2, 3], [4, 5, 6]])

    def test_the_whole_model_agrees_with_itself(self):
        stream = torch.randint(256, (200,), generator=torch.Generator().manual_seed(1)).to(torch.int16)
        results = twins.evaluate(toy_model(), stream, n_windows=3, n_draws=2, device=torch.device("cpu"))
        self.assertEqual((len(results["losses"]), results["agreements"][-1]), (3, 1))
        self.assertLess(results["agreements"][0], 1)
        self.assertEqual(len(results["skips"]), 24)
        self.assertEqual(results["window_losses"], {32: results["losses"][-1]})

    def test_training_stops_in_time_and_learns(self):
        stream = torch.arange(20).repeat(20).to(torch.int16)
        model = toy_model()
        before = twins.evaluate(model, stream, 4, 1, torch.device("cpu"))["losses"][-1]
        options = SimpleNamespace(
            recipe="redundant", seed=1, rate=3e-3, weight_decay=0.1, steps=30, seconds=None, warm_up=5, batch=2,
            context=32, short_context=16, short_share=0.5, drop_max=0.6, whole_share=0.25,
        )
        n_steps, n_bytes = twins.train(model, stream, options, torch.device("cpu"))
        self.assertEqual((n_steps, n_bytes), (30, 30 * 64))
        self.assertLess(twins.evaluate(model, stream, 4, 1, torch.device("cpu"))["losses"][-1], before)
        options.seconds = 1.0
        self.assertGreater(twins.train(model, stream, options, torch.device("cpu"))[0], 1)


class CorpusTest(unittest.TestCase):
    def test_prompts_are_ascii_and_held_out_by_subject(self):
        sections = corpus.read_prompts(Path(__file__).with_name("prompts.txt"))
        rng = random.Random(0)
        drawn = [corpus.draw_prompt(sections, rng) for _ in range(2000)]
        self.assertTrue(all(text.isascii() and "{}" not in text for text, _, _ in drawn))
        held_out = {topic for _, topic, is_held_out in drawn if is_held_out}
        self.assertTrue(held_out)
        self.assertFalse(held_out & {topic for _, topic, is_held_out in drawn if not is_held_out})

    def test_texts_about_one_topic_stand_side_by_side(self):
        topics = ["b", "a", "b", "c", "a"]
        selected = torch.tensor([True, True, True, True, False])
        self.assertEqual(corpus.rows_by_topic(topics, selected).tolist(), [1, 0, 2, 3])

    def test_improbable_tokens_are_never_chosen(self):
        logits = torch.tensor([[0.0, 1.0, -2.0]]).repeat(500, 1)
        chosen = corpus.choose(logits, 1.0, 0.1, torch.Generator().manual_seed(0))
        self.assertEqual(set(chosen.tolist()), {0, 1})

    def test_texts_keep_and_continue_their_prompt(self):
        prompts = [[1, 2], [3, 4, 5, 6]]
        tokens = corpus.write_texts(toy_model(), prompts, 6, lambda logits: torch.tensor([9, 9]))
        self.assertEqual(tokens.tolist(), [[1, 2, 9, 9, 9, 9], [3, 4, 5, 6, 9, 9]])

    def test_a_text_ends_at_the_first_end_token_after_its_prompt(self):
        tokens = torch.tensor([[2, 5, 2, 7, 2], [2, 5, 6, 7, 8]])
        self.assertEqual(corpus.text_lengths(tokens, torch.tensor([1, 1]), [0, 2]).tolist(), [3, 5])

    def test_choices_start_at_the_last_token_of_the_prompt(self):
        one_text = {"prompt_lengths": torch.tensor([2]), "lengths": torch.tensor([5])}
        data = {"tokens": torch.zeros(1, 6), **one_text}
        is_text, is_choice = kangaroo.masks(data, torch.tensor([0]))
        self.assertEqual(is_text.tolist(), [[True] * 5 + [False]])
        self.assertEqual(is_choice.tolist(), [[False, True, True, True, False, False]])


class VocabularyTest(unittest.TestCase):
    def setUp(self):
        letters = vocab.byte_alphabet()
        tokens = [*letters, *vocab.SPECIAL_TOKENS, "he", "Ġhe", "ll"]
        self.vocabulary = vocab.Vocabulary(tokens, ["h e", "Ġ he", "l l"])

    def test_every_byte_has_a_letter(self):
        letters = vocab.byte_alphabet()
        self.assertEqual((len(set(letters)), letters[ord("A")], letters[ord(" ")]), (256, "A", "Ġ"))

    def test_pairs_merge_by_rank_and_special_tokens_stay_whole(self):
        ids = self.vocabulary.encode("<|im_end|>hell he1")
        self.assertEqual(ids, [258, 259, 261, 260, ord("1")])

    def test_tokens_convert_to_their_bytes(self):
        ids = self.vocabulary.encode("hell he<|im_end|>")
        spelled = [byte for token in ids for byte in self.vocabulary.byte_ids(token)]
        self.assertEqual(spelled, [*b"hell he", vocab.END_OF_TURN])

    def test_texts_get_one_end_token(self):
        tokens = torch.tensor([[259, 0], [261, vocab.END_OF_TEXT]])
        found = corpus.as_bytes(tokens, torch.tensor([1, 2]), self.vocabulary)
        self.assertEqual(found.tolist(), [*b"he", vocab.END_OF_TEXT, *b"ll", vocab.END_OF_TEXT])


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "out.gguf"

    def export_toy_adapter(self):
        """Returns the file, and the weights written to it."""
        adapter = kangaroo.Adapter(TOY, torch.full((64,), 2.0))
        state = adapter.state_dict()
        checkpoint = {"exit_layer": 2, "config": asdict(adapter.config), "trained": state}
        export.export_adapter(checkpoint, "trained", self.path)
        return gguf_weights.open_gguf(self.path), state

    def test_an_adapter_file_has_its_shape(self):
        reader, _ = self.export_toy_adapter()
        for key, expected in {
            "general.architecture": "kangaroo",
            "kangaroo.exit_layer": 2,
            "kangaroo.block_count": 1,
            "kangaroo.context_length": 32,
            "kangaroo.embedding_length": 64,
            "kangaroo.attention.head_count": 4,
            "kangaroo.attention.head_count_kv": 4,
            "kangaroo.rope.dimension_count": 16,
            "kangaroo.rope.freq_base": 10000.0,
        }.items():
            self.assertEqual(gguf_weights.read_field(reader, key), expected, key)
        types = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
        matrices = {f"blk.0.attn_{part}.weight": "Q8_0" for part in ("q", "k", "v", "output")}
        self.assertEqual(types, {**matrices, "blk.0.attn_norm.weight": "F32", "output_norm.weight": "F32"})

    def test_an_adapter_keeps_the_order_of_halves(self):
        reader, state = self.export_toy_adapter()
        for tensor in reader.tensors:
            found = torch.from_numpy(gguf_weights.dequantize(tensor.data, tensor.tensor_type).copy())
            torch.testing.assert_close(found, state[tensor.name], atol=5e-3, rtol=0)

    def test_an_exported_twin_reads_back_unchanged(self):
        model = toy_model()
        checkpoint = {"recipe": "plain", "config": asdict(TOY), "model": model.state_dict()}
        export.export_twin(checkpoint, self.path)
        reader = gguf_weights.open_gguf(self.path)
        config = gguf_weights.read_config(reader)
        self.assertEqual(asdict(config) | {"rms_eps": 0}, asdict(TOY) | {"rms_eps": 0})
        for name, weight in gguf_weights.read_weights(reader, config).items():
            torch.testing.assert_close(weight, model.state_dict()[name], atol=1e-2, rtol=0)


if __name__ == "__main__":
    unittest.main()
