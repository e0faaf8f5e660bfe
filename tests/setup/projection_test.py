#!/usr/bin/env python3
"""docs/paper_projection.py on times that follow a formula."""
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import paper_projection as projection  # noqa: E402

SHAPE, N_TIMED, N_LAYERS = "llama-3.1-8b", 8, 32
HEAD, MLP, WINDOW = 2.0, 0.5, 0.125  # milliseconds
CONTEXTS = (1024, 4096, 32768)


def attention(context):
    return context / 8192


def shape_row(context, row_cost=0.0, weight_type="F16", shape=SHAPE):
    """A row of shape_bench. Every row of a pass beyond the first costs `row_cost` of the pass."""
    times = {}
    for n_layers in (2, 4, N_TIMED):
        for n in (1, 2, 4, 8, 16):
            ms = HEAD + n_layers * (attention(context) + MLP)
            times[f"{n} row{'s' * (n > 1)}, {n_layers} layer{'s' * (n_layers > 1)}"] = ms * (1 + row_cost * (n - 1))
    for plan, layers in (("full", N_TIMED * (attention(context) + MLP)), ("a=skip", N_TIMED * MLP),
                         ("m=skip", N_TIMED * attention(context)), ("a=w16+1024", N_TIMED * (WINDOW + MLP)),
                         ("a=w16+1024,l1+3+5+7=skip", N_TIMED / 2 * (WINDOW + MLP))):
        times[f"draft, {plan}"] = HEAD + layers
    return {"what": "shape", "shape": shape, "type": weight_type, "n_layers": N_TIMED, "depth": context, "n_tokens": 4,
            "times_ms": {name: [3.8 * ms, 4 * ms, 4.2 * ms] for name, ms in times.items()}}


def costs(**how):
    return projection.Costs([shape_row(context, **how) for context in CONTEXTS], N_LAYERS)


class CostsTest(unittest.TestCase):
    def test_few_layers_give_the_pass_of_all(self):
        self.assertAlmostEqual(costs().step(4096), HEAD + 32 * (0.5 + 0.5))
        self.assertAlmostEqual(costs(row_cost=0.1).verification(4, 4096), 1.3 * 34)

    def test_contexts_and_rows_between_measured_ones_lie_on_a_line(self):
        self.assertAlmostEqual(costs().step(2048), HEAD + 32 * (0.25 + 0.5))
        self.assertAlmostEqual(costs(row_cost=0.1).verification(11, 4096), 2.0 * 34)

    def test_nothing_is_computed_beyond_what_was_measured(self):
        with self.assertRaisesRegex(ValueError, "a context from 1024 to 32768, found 512"):
            costs().step(512)
        with self.assertRaisesRegex(ValueError, "rows of a pass from 1 to 16, found 17"):
            costs().verification(17, 4096)

    def test_draft_steps_are_sums_of_their_parts(self):
        self.assertAlmostEqual(costs().draft(4096), 34)
        self.assertAlmostEqual(costs().draft(4096, no_attention=0.25, no_mlp=0.5), HEAD + 32 * (0.75 * 0.5 + 0.5 * 0.5))
        self.assertAlmostEqual(costs().draft(32768, no_attention=0.25, windows=0.75), HEAD + 32 * (0.75 * WINDOW + 0.5))

    def test_errors_show_what_does_not_fit(self):
        row = shape_row(4096)
        self.assertAlmostEqual(max(projection.Parts(row).line_errors()), 0)
        self.assertAlmostEqual(max(projection.Parts(row).plan_errors()), 0)
        times = row["times_ms"]
        times["4 rows, 8 layers"] = [ms * 1.25 for ms in times["4 rows, 8 layers"]]
        times["draft, a=w16+1024,l1+3+5+7=skip"] = [ms * 2 for ms in times["draft, a=w16+1024,l1+3+5+7=skip"]]
        self.assertAlmostEqual(max(projection.Parts(row).line_errors()), 0.2)
        self.assertAlmostEqual(max(projection.Parts(row).plan_errors()), 0.5)


class SpeedTest(unittest.TestCase):
    def speed(self, draft_ms, acceptance, search_share=0.0, cap=10, model=projection.speed, **how):
        return model(costs(**how), 4096, draft_ms, acceptance, cap, search_share)

    def test_all_accepted_is_a_division(self):
        for model in (projection.speed, projection.speed_with_best_length):
            self.assertAlmostEqual(self.speed(17, 1.0, model=model), 11 * 34 / (10 * 17 + 34))
            self.assertAlmostEqual(self.speed(17, 1.0, search_share=0.25, model=model), 0.75 * 11 * 34 / (10 * 17 + 34))
        self.assertAlmostEqual(self.speed(17, 1.0, row_cost=0.1), 11 * 34 / (10 * 17 + 2 * 34))

    def test_all_rejected_loses_a_draft_step(self):
        self.assertAlmostEqual(self.speed(17, 0.0), 34 / (17 + 34))

    def test_a_draft_as_expensive_as_the_model_never_gains(self):
        for acceptance in (0.0, 0.5, 0.9, 1.0):
            self.assertLessEqual(self.speed(34, acceptance), 1 + 1e-9)
            self.assertLessEqual(self.speed(34, acceptance, model=projection.speed_with_best_length), 1 + 1e-9)

    def test_one_draft_token_at_even_odds(self):
        self.assertAlmostEqual(self.speed(17, 0.5, cap=1), 1.5 * 34 / (17 + 34))
        # Of two at most: half of the drafts have one token, half have two.
        self.assertAlmostEqual(self.speed(17, 0.5, cap=2), (1 + 0.5 * 1.5) * 34 / (1.5 * 17 + 34))

    def test_lengths_have_the_acceptance_rate_that_they_are_made_from(self):
        lengths = projection.draft_lengths(0.8, 10)
        self.assertAlmostEqual(sum(lengths.values()), 1)
        drafted = sum(n * probability for n, probability in lengths.items())
        # All but the last are accepted; the tenth is the last of its draft whether it is accepted or not.
        accepted = sum((n - 1) * probability for n, probability in lengths.items()) + lengths[10] * 0.8
        self.assertAlmostEqual(accepted / drafted, 0.8)


class PaperTest(unittest.TestCase):
    def setUp(self):
        self.paper = projection.Paper()

    def test_every_model_has_all_methods_on_three_data_sets(self):
        for shape, model in self.paper.models.items():
            self.assertEqual(len(self.paper.data_sets(shape)), 3)
            for data_set in self.paper.data_sets(shape):
                self.assertIn(data_set, self.paper.contexts)
                for method in ("AR", "DEL", "SWIFT", "CLaSp", "KnapSpec"):
                    cell = self.paper.cells[shape, data_set, method]
                    self.assertEqual(cell["acceptance"] is None, method == "AR")
            self.assertLess(model["clasp_skipped_layers"], model["n_layers"])

    def test_the_share_of_a_draft_is_what_the_prediction_was_made_with(self):
        for acceptance, share in ((0.95, 0.5), (0.8, 0.3)):
            predicted = projection.best_predicted(acceptance, share, 10)
            self.assertAlmostEqual(projection.draft_share(acceptance, predicted, 10), share)
        self.assertAlmostEqual(projection.best_predicted(1.0, 0.5, 10), 11 / 6)

    def test_both_choices_save_the_same_at_the_costs_of_the_paper(self):
        for data_set in self.paper.data_sets(SHAPE):
            context = self.paper.contexts[data_set]
            of_attention = self.paper.attention_share(context)
            for choice in projection.CHOICES.values():
                shares = choice(self.paper, SHAPE, data_set, context)
                saved = shares["no_attention"] * of_attention + shares["no_mlp"] * (1 - of_attention)
                self.assertAlmostEqual(saved, self.paper.saved_share(SHAPE, data_set))
        self.assertLessEqual(max(self.paper.saved_share(shape, data_set) for shape in self.paper.models
                                 for data_set in self.paper.data_sets(shape)), 0.5)

    def test_attentions_first_leaves_two_and_goes_on_with_mlps(self):
        shares = projection.attention_first(self.paper, "qwen3-8b", "MMLU-Pro", 2048)
        self.assertAlmostEqual(shares["no_attention"], 34 / 36)
        self.assertGreater(shares["no_mlp"], 0)


class TablesTest(unittest.TestCase):
    def setUp(self):
        self.file = {"name": "gpu-shapes.json", "rows": [shape_row(context, 0.02, weight_type) for context in CONTEXTS
                                                         for weight_type in ("F16", "Q4_K_M")]}

    def test_cells_are_the_computed_speeds(self):
        table, text = projection.speeds_f16([self.file])
        rows = [line for line in table.split("\n") if line.startswith("| Llama-3.1-8B |")]
        self.assertEqual(len(rows), 3)
        paper, its = projection.Paper(), costs(row_cost=0.02)
        skipped = 8 / 32
        clasp = projection.speed(its, 13400, its.draft(13400, no_attention=skipped, no_mlp=skipped), 0.917, 10, 0.048)
        saved = paper.saved_share(SHAPE, "GovReport")
        knapspec = projection.speed(its, 13400, its.draft(13400, no_attention=saved, no_mlp=saved), 0.97, 10, 0.075)
        self.assertIn(f"| 1.11 | {clasp:.2f} | 1.28 | {knapspec:.2f} |", rows[0])
        self.assertIn("Computed speed", text)
        self.assertIn("gains in 3 of 3 cells with the same share of both, ", text)

    def test_models_come_in_the_order_of_the_paper(self):
        self.file["rows"] = [shape_row(context, shape=shape) for shape in ("qwen3-8b", "llama-3.2-1b") for context in CONTEXTS]
        table, _ = projection.contexts([self.file])
        self.assertEqual([line.split(" | ")[0] for line in table.split("\n")[2:]], ["| Llama-3.2-1B", "| Qwen3-8B"])

    def test_windows_gain_and_more_so_in_long_contexts(self):
        table, _ = projection.contexts([self.file])
        cells = [float(cell) for cell in table.split("\n")[2].strip("| ").split(" | ")[2:]]
        alone, windows = cells[:3], cells[3:6]
        self.assertLess(windows[1] / alone[1], windows[2] / alone[2])
        self.assertGreater(windows[1], alone[1])

    def test_costs_have_the_shortest_and_the_longest_context(self):
        table, text = projection.pass_costs([self.file])
        self.assertEqual(table.count("| Llama-3.1-8B | F16 |"), 2)
        self.assertIn("| Llama-3.1-8B | F16 | 1,024 | 22.00 | 1.02 | 1.06 | 1.14 | 1.30 | 1.00 | 18 % | 18 % | 73 % | 9 % | 0.0 % | "
                      "0.0 % |", table)
        self.assertIn("Times of 8 layers", text)
        self.assertIn("at most 2.5 % of it", text)


if __name__ == "__main__":
    unittest.main()
