"""The second screen: every edit ends in a valid schema.toml, or says what is wrong where it is."""

import html
import re

import pytest

from deniable.drafting.draft import draft_schema
from deniable.schema.schema import Schema
from deniable.studio.schema_file import SchemaFile
from studio_client import text_of, version_of

pytestmark = pytest.mark.slow

GIVEN = {"table": "table.csv", "schema": "draft.toml"}


@pytest.fixture
def drafted(folder, small_table):
    """The folder with a draft of the small table, with a question and a constraint."""
    text = draft_schema(small_table).text
    question = '# To decide:\n#   1. "boats": many rows have 5: if it means missing, add it.\n'
    head, _, tail = text.partition("# Constraints")[0].partition("\nformat = 1")
    intro = head.split("# To decide")[0].split("# Nothing")[0]
    rule = '\n[[constraint]]\nforbid = { home = ["windmill"], boats = [0] }\nconfirmed = false\n'
    (folder / "draft.toml").write_text(f"{intro}{question}\nformat = 1{tail}{rule}")
    return folder / "draft.toml"


def number(path, name):
    return [column.name for column in Schema.read(path).columns].index(name)


def column(path, name):
    return next(each for each in Schema.read(path).columns if each.name == name)


def edit(studio, path, name, **fields):
    """Open the form of a column, and save it with these fields."""
    at = str(number(path, name))
    page = studio.get("/schema", **GIVEN, column=at)
    typed = {f"{key}-{at}": value for key, value in fields.items()}
    sent = {**GIVEN, "version": version_of(page), "edited": at, **typed}
    return studio.client.post("/schema/save", data=sent)


@pytest.mark.usefixtures("drafted")
def test_the_draft_is_a_row_for_each_column_with_what_was_read_off(studio):
    page = studio.get("/schema", **GIVEN)
    words = text_of(page)
    for name in ("years", "trade", "home", "boats", "pet"):
        assert name in words
    assert page.count('class="mark stays">read off the data') == 5
    assert "7 entries are not confirmed" in words  # five columns, the rows, a constraint
    assert "Many rows have 5" in words
    assert "It means missing" in words


def test_a_type_is_changed_in_two_steps_and_comments_stay(studio, drafted):
    comments = [line for line in drafted.read_text().split("\n") if line.startswith("#")]
    values = "axolotl\r\ncapybara\r\npangolin"
    sent = {"type": "text", "values": values}
    reply = edit(studio, drafted, "pet", **sent, shown_type="categorical")
    assert reply.status_code == 200  # the fields of the new type, nothing saved
    assert "Not saved yet." in text_of(reply.text)
    assert column(drafted, "pet").kind == "categorical"
    assert re.search(r'name="other-\d" value="other"', reply.text)
    reply = edit(studio, drafted, "pet", **sent, shown_type="text", other="rest", confirmed="on")
    assert reply.status_code == 200
    assert "Not saved" not in text_of(reply.text)
    assert column(drafted, "pet").kind == "text"
    assert column(drafted, "pet").confirmed
    after = [line for line in drafted.read_text().split("\n") if line.startswith("#")]
    assert after == comments


RULES = """
[[attribute]]
name = "double"
type = "computed"
formula = "boats + boats"

[[attribute]]
name = "fleet"
type = "computed"
from = "boats"
map = [[0, "none"], [1, "some"], [2, "some"], [3, "some"], [4, "some"], [5, "some"]]

[[attribute]]
name = "age_twice"
type = "computed"
formula = "years + years"

[[constraint]]
forbid = { boats = [5], pet = ["axolotl"] }

[[constraint]]
forbid = { home = ["windmill"], pet = ["axolotl"] }
"""


def test_rules_that_no_longer_apply_are_dropped_and_named(studio, drafted):
    drafted.write_text(drafted.read_text() + RULES)
    sent = {"type": "text", "shown_type": "text", "values": "1\r\n2", "other": "many"}
    reply = edit(studio, drafted, "boats", **sent)
    words = text_of(reply.text)
    assert reply.status_code == 200
    assert "Saved. These rules do not apply to the changed column, and are gone:" in words
    for rule in (
        "double is boats + boats. It is left out now.",
        "fleet follows from boats. It is a column of its own now.",
        "No record has home windmill together with boats 0.",
        "No record has boats 5 together with pet axolotl.",
    ):
        assert rule in words.partition("Columns")[0]
    schema = Schema.read(drafted)
    assert column(drafted, "boats").kind == "text"
    assert (column(drafted, "double").kind, column(drafted, "double").release) == (
        "identifier",
        "omit",
    )
    assert column(drafted, "fleet").values == ("none", "some")
    assert not column(drafted, "fleet").confirmed
    assert not column(drafted, "double").confirmed
    assert column(drafted, "age_twice").kind == "computed"
    assert [each.columns for each in schema.constraints] == [("home", "pet")]


def test_a_column_that_is_left_out_takes_its_rules_with_it(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    sent = {**GIVEN, "version": version, "answer": "omit"}
    words = text_of(studio.post(f"/schema/answer?column={number(drafted, 'boats')}", **sent))
    assert "Saved. This rule does not apply" in words
    assert Schema.read(drafted).constraints == ()


def test_a_broken_edit_drops_no_rule(studio, drafted):
    before = drafted.read_text()
    sent = {"type": "integer", "shown_type": "integer", "min": "9", "max": "1"}
    assert edit(studio, drafted, "boats", **sent).status_code == 422
    assert drafted.read_text() == before


def buttons(page):
    """The buttons of the schema's form: the address and the field of each."""
    found = []
    for tag in re.findall(r"<button[^>]*>", page.partition("<footer")[0]):
        given = {key: html.unescape(value) for key, value in re.findall(r'([a-z]+)="([^"]*)"', tag)}
        found.append((given.get("formaction", "/schema/save"), given))
    return found


def test_what_is_not_saved_survives_every_other_button(studio, drafted):
    rules = '\n[[constraint]]\nforbid = { home = ["houseboat"], boats = [2] }\nconfirmed = false\n'
    text = drafted.read_text() + rules
    drafted.write_text(text)
    at = number(drafted, "years")
    others = [
        (where, given)
        for where, given in buttons(studio.get("/schema", **GIVEN, column=str(at)))
        if not where.startswith("/schema/save") and f"close={at}" not in where
    ]
    kinds = {where.partition("?")[0] for where, _ in others}
    assert kinds == {
        f"/schema/{each}" for each in ("edit", "answer", "confirm", "constraint", "rows")
    }
    typed = {f"type-{at}": "integer", f"shown_type-{at}": "integer", f"max-{at}": "7x7"}
    for where, given in others:
        drafted.write_text(text)
        version = version_of(studio.get("/schema", **GIVEN))
        sent = {**GIVEN, "version": version, "edited": str(at), **typed, "rows_max": "1234"}
        if "name" in given:
            sent[given["name"]] = given["value"]
        reply = studio.client.post(where.partition("#")[0], data=sent)
        assert reply.status_code == (422 if "text=" in where or "plan=" in where else 200), where
        assert f'name="max-{at}" value="7x7"' in reply.text, where
        assert f'name="edited" value="{at}"' in reply.text
        assert "Not saved yet." in text_of(reply.text)
        assert "May be published" not in reply.text
        if where != "/schema/rows":
            assert 'value="1234"' in reply.text, where
        # It is that of the new file, so that what survived can be saved.
        assert version_of(reply.text) == SchemaFile.read(drafted).version
        changes = not where.startswith("/schema/edit")
        assert (drafted.read_text() != text) is changes, where


def test_what_survived_is_saved_by_one_save(studio, drafted):
    at, other = str(number(drafted, "years")), str(number(drafted, "boats"))
    sent = {**GIVEN, "version": version_of(studio.get("/schema", **GIVEN)), "edited": at}
    typed = {f"type-{at}": "integer", f"shown_type-{at}": "integer", f"outside-{at}": "error"}
    typed |= {f"min-{at}": "0", f"max-{at}": "150", "rows_max": "7000"}
    page = studio.post(f"/schema/edit?column={other}", **sent, **typed)
    assert f'name="max-{at}" value="150"' in page
    assert f'id="f-type-{other}"' in page
    typed["version"] = version_of(page)
    page = studio.post("/schema/save", **{**sent, **typed})
    assert "Not saved" not in page
    assert column(drafted, "years").values[-1] == 150
    assert (Schema.read(drafted).rows_max, Schema.read(drafted).rows_max_confirmed) == (7000, True)


def test_a_form_without_a_change_is_closed_by_other_buttons(studio, drafted):
    at = str(number(drafted, "years"))
    page = studio.get("/schema", **GIVEN, column=at)
    field = r'name="((?:type|shown_type|min|max|outside)-\d)"[^>]*?value="([^"]*)"'
    sent = dict(re.findall(field, page)) | {f"type-{at}": "integer", f"outside-{at}": "error"}
    sent |= {**GIVEN, "version": version_of(page), "edited": at, "rows_max": "2000"}
    page = studio.post("/schema/constraint?constraint=0", **sent, action="confirm")
    assert "Not saved" not in page
    assert "f-type-" not in page
    assert Schema.read(drafted).constraints[0].confirmed


@pytest.mark.usefixtures("drafted")
def test_what_saves_is_called_save_and_nothing_else_is(studio):
    page = studio.get("/schema", **GIVEN, column="0")
    page += studio.get("/schema", **GIVEN, text="1")
    found = re.findall(r"<button([^>]*)>(.*?)</button>", page)
    saving = {words for tag, words in found if "formaction" not in tag or "/schema/save" in tag}
    assert saving == {"Save", "Open in another browser"}
    assert not [words for tag, words in found if "Save" in words and words != "Save"]


def test_fields_of_another_type_are_a_part_of_the_page(studio, drafted):
    at = str(number(drafted, "boats"))
    page = studio.post("/schema/fields", **GIVEN, column=at, **{f"type-{at}": "text"})
    assert f'name="other-{at}"' in page
    assert "<html" not in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"type": "integer", "min": "9", "max": "1"}, "min is above max"),
        ({"type": "integer", "min": "x", "max": "1"}, "min: write a whole number"),
        ({"type": "integer", "min": "", "max": ""}, "needs min and max"),
        ({"type": "nonsense"}, "choose one of the types"),
    ],
)
def test_a_broken_edit_is_shown_where_it_is_and_not_saved(studio, drafted, fields, words):
    before = drafted.read_text()
    reply = edit(studio, drafted, "boats", shown_type=fields["type"], **fields)
    assert reply.status_code == 422
    assert words in text_of(reply.text)
    assert drafted.read_text() == before
    if fields.get("min"):
        assert re.search(rf'name="min-\d" value="{fields["min"]}"', reply.text)


def test_what_needs_no_look_is_confirmed_at_once_and_a_question_is_not(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/confirm", **GIVEN, version=version, what="ready")
    schema = Schema.read(drafted)
    assert [each.name for each in schema.columns if not each.confirmed] == ["boats"]
    assert (schema.rows_max, schema.rows_max_confirmed) == (2000, True)
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/answer", **GIVEN, version=version, column="3", answer="keep")
    assert column(drafted, "boats").confirmed


def test_a_code_that_means_missing_is_one_click(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    page = studio.post("/schema/answer", **GIVEN, version=version, column="3", answer="missing")
    assert column(drafted, "boats").missing == ("5",)
    assert column(drafted, "boats").values[-1] == 4
    assert 'name="max-3" value="4"' in page  # to be looked at
    assert "Many rows have" not in text_of(page)


def test_the_column_that_says_who_becomes_the_unit(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post(
        "/schema/answer",
        **GIVEN,
        version=version,
        column="0",
        answer="unit",
        max_rows_per_unit="4",
    )
    schema = Schema.read(drafted)
    assert (schema.unit, schema.max_rows_per_unit) == ("years", 4)
    assert "says whose row it is" in studio.get("/schema", **GIVEN)


def test_rows_are_confirmed_with_another_number(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/rows", **GIVEN, version=version, rows_max="5,000")
    assert Schema.read(drafted).rows_max == 5000
    assert Schema.read(drafted).rows_max_confirmed
    version = version_of(studio.get("/schema", **GIVEN))
    reply = studio.client.post("/schema/rows", data={**GIVEN, "version": version, "rows_max": "-1"})
    assert reply.status_code == 422


def test_a_rule_is_confirmed_or_deleted(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    fields = {**GIVEN, "constraint": "0"}
    studio.post("/schema/constraint", **fields, version=version, action="confirm")
    assert Schema.read(drafted).constraints[0].confirmed
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/constraint", **fields, version=version, action="delete")
    assert Schema.read(drafted).constraints == ()
    version = version_of(studio.get("/schema", **GIVEN))
    data = {**fields, "version": version, "action": "delete"}
    assert studio.client.post("/schema/constraint", data=data).status_code == 422


@pytest.mark.parametrize("action", ["confirm", "delete"])
def test_all_open_rules_are_confirmed_or_deleted_at_once(studio, drafted, action):
    rules = (
        '\n[[constraint]]\nforbid = { home = ["windmill"], boats = [1] }\n'
        '\n[[constraint]]\n# No row.\nforbid = { home = ["houseboat"], boats = [2] }\n'
        "confirmed = false\n"
    )
    drafted.write_text(drafted.read_text() + rules)
    page = studio.get("/schema", **GIVEN)
    assert "All 2 are rules" in page
    assert "No record has home windmill together with boats 0." in text_of(page)
    fields = {**GIVEN, "version": version_of(page), "all": "1", "action": action}
    studio.post("/schema/constraint", **fields)
    found = Schema.read(drafted).constraints
    assert all(each.confirmed for each in found)
    # The second was confirmed before, and stays.
    assert [each.conditions[1].values for each in found] == (
        [(0,), (1,), (2,)] if action == "confirm" else [(1,)]
    )
    data = {**fields, "version": version_of(studio.get("/schema", **GIVEN))}
    assert studio.client.post("/schema/constraint", data=data).status_code == 422


def test_everything_confirmed_may_be_published(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/confirm", **GIVEN, version=version, what="ready")
    version = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/answer", **GIVEN, version=version, column="3", answer="keep")
    assert "Confidential, stays inside" in studio.get("/schema", **GIVEN)
    version = version_of(studio.get("/schema", **GIVEN))
    fields = {**GIVEN, "constraint": "0", "action": "confirm"}
    page = studio.post("/schema/constraint", **fields, version=version)
    assert "May be published." in page
    assert not Schema.read(drafted).drafted


def test_text_is_saved_and_a_broken_line_is_shown(studio, drafted):
    version = version_of(studio.get("/schema", **GIVEN))
    text = "# mine\n" + drafted.read_text()
    studio.post("/schema/text", **GIVEN, version=version, text=text.replace("\n", "\r\n"))
    assert drafted.read_text() == text
    version = version_of(studio.get("/schema", **GIVEN))
    broken = text.replace('type = "integer"', "type = integer", 1)
    data = {**GIVEN, "version": version, "text": broken}
    reply = studio.client.post("/schema/text", data=data)
    assert reply.status_code == 422
    assert "type = integer" in text_of(reply.text).split("Edit as text")[0]
    assert drafted.read_text() == text


@pytest.mark.parametrize(
    "path", ["save", "edit", "answer", "confirm", "rows", "constraint", "text"]
)
def test_a_stale_page_changes_nothing(studio, drafted, path):
    version = version_of(studio.get("/schema", **GIVEN))
    drafted.write_text("# by hand\n" + drafted.read_text())
    before = drafted.read_text()
    data = {**GIVEN, "version": version, "column": "0", "constraint": "0", "answer": "keep"}
    reply = studio.client.post(f"/schema/{path}", data={**data, "text": "format = 1"})
    assert reply.status_code == 409
    assert "out of date" in reply.text
    assert drafted.read_text() == before


@pytest.mark.parametrize("at", ["99", "-1", "x", "", "9999999999"])
@pytest.mark.usefixtures("drafted")
def test_a_column_that_is_not_there_is_no_bug(studio, at):
    version = version_of(studio.get("/schema", **GIVEN))
    data = {**GIVEN, "version": version, "column": at, "answer": "keep"}
    assert studio.client.post("/schema/answer", data=data).status_code == 422
    assert studio.client.get("/schema", params={**GIVEN, "column": at}).status_code == 200


def test_a_note_that_hides_names_leaves_nothing_without_a_look(studio, drafted):
    text = drafted.read_text().replace('1. "boats": many', '1. "boats" and 2 more: many')
    drafted.write_text(text)
    assert "without a question" not in studio.get("/schema", **GIVEN)


def test_names_and_values_are_inert(studio, folder):
    evil = '<script>alert("x")</script>'
    text = f"format = 1\n[[attribute]]\nname = '{evil}'\ntype = \"categorical\"\n"
    text += f"values = ['{evil}', '</textarea>{evil}']\nconfirmed = false\n"
    (folder / "evil.toml").write_text(text)
    page = studio.get("/schema", schema="evil.toml", column="0", text="1")
    assert "<script>alert" not in page
    assert "</textarea>&lt;" not in page


def test_what_is_no_schema_is_not_shown_as_public(studio, drafted, folder):
    drafted.write_text(drafted.read_text() + "\n[[broken\n")
    page = studio.get("/schema", **GIVEN)
    assert "Confidential, stays inside." in page
    assert "May be published" not in page
    assert "confirmed as public knowledge" not in page
    for name in ("table.csv", "table.csv.toml.csv"):
        (folder / name).write_text((folder / "table.csv").read_text())
        reply = studio.client.get("/schema", params={"schema": name})
        assert reply.status_code == 422
        assert ".toml" in reply.text
        assert not any(cell in reply.text for cell in ("kelpfarmer", "windmill", "axolotl"))


def test_a_change_that_is_not_saved_is_not_shown_as_public(studio):
    given = {"schema": "schema.toml"}
    page = studio.get("/schema", **given)
    assert "May be published" in page
    sent = {**given, "version": version_of(page), "text": "kelpfarmer = ["}
    reply = studio.client.post("/schema/text", data=sent)
    assert reply.status_code == 422
    assert "May be published" not in reply.text


@pytest.mark.parametrize("rows", ["9" * 5000, "²"])
def test_a_number_of_rows_that_is_none_is_a_clear_page(studio, drafted, rows):
    version = version_of(studio.get("/schema", **GIVEN))
    data = {**GIVEN, "version": version, "rows_max": rows}
    assert studio.client.post("/schema/rows", data=data).status_code == 422
    unit = {**GIVEN, "version": version, "column": "0", "answer": "unit", "max_rows_per_unit": rows}
    assert studio.client.post("/schema/answer", data=unit).status_code == 200
    assert Schema.read(drafted).max_rows_per_unit == 1


def test_confirming_many_says_that_they_become_public(studio, drafted):
    assert "You declare with this that their descriptions are public" in text_of(
        studio.get("/schema", **GIVEN)
    )
    assert drafted.exists()


def test_the_guess_in_the_field_is_a_round_number(studio, drafted):
    for rows, guess in ((2000, 2000), (32_000, 50_000), (9_500, 10_000), (7, 10)):
        text = re.sub(r"rows_max = [0-9_]+", f"rows_max = {rows}", drafted.read_text())
        drafted.write_text(text)
        assert f'name="rows_max" inputmode="numeric" size="12" value="{guess}"' in studio.get(
            "/schema", **GIVEN
        )
    version = version_of(studio.get("/schema", **GIVEN))
    page = studio.post("/schema/rows", **GIVEN, version=version, rows_max="2000")
    assert 'size="12" value="2000"' in page


def test_a_code_that_is_a_value_is_one_click_and_then_looked_at(studio, drafted):
    question = '"boats": -99 is taken to mean missing: please check.'
    text = re.sub(r'"boats": many.*', question, drafted.read_text())
    at = text.index("confirmed", text.index('name = "boats"'))
    drafted.write_text(f'{text[:at]}missing = ["-99"]\n{text[at:]}')
    page = studio.get("/schema", **GIVEN)
    assert "No, it is a value" in page
    version = version_of(page)
    page = studio.post("/schema/answer", **GIVEN, version=version, column="3", answer="value")
    assert 'name="min-3" value="-99"' in page
    assert column(drafted, "boats").missing == ()
    assert "taken to mean" not in text_of(page).partition("Edit as text")[0]


def test_rare_values_are_gathered_and_then_looked_at(studio, drafted):
    question = '"pet": 1 of its 4 values is rare; listing them discloses that they occur.'
    text = re.sub(r'"boats": many.*', question, drafted.read_text())
    drafted.write_text(text.replace('"axolotl",', '"axolotl", "dodo",'))
    page = studio.get("/schema", **GIVEN)
    assert "Gather the rare values" in page
    sent = {**GIVEN, "version": version_of(page), "column": str(number(drafted, "pet"))}
    words = text_of(studio.post("/schema/answer", **sent, answer="frequent"))
    found = column(drafted, "pet")
    assert found.kind == "text"
    assert "dodo" not in found.values
    assert "axolotl" in found.values
    assert "pet" in Schema.read(drafted).drafted  # it was read off the table: to be confirmed
    assert "discloses that they occur" not in words.partition("Edit as text")[0]


def test_one_answer_confirms_all_columns_with_no_other_question(studio, drafted):
    """A column with a second question is left to be asked."""
    same = '"home", "boats", "pet": one text among its numbers is taken to mean missing: please'
    other = '"boats": many rows have 5: if it means missing, add it.'
    text = re.sub(
        r'1\. "boats": many.*', f"1. {same}\n#      check.\n#   2. {other}", drafted.read_text()
    )
    drafted.write_text(text)
    page = studio.get("/schema", **GIVEN)
    assert "2 columns have the same question: home, pet." in text_of(page)
    sent = {**GIVEN, "version": version_of(page), "what": "alike"}
    studio.post("/schema/confirm", **sent, question="0")
    confirmed = {each.name for each in Schema.read(drafted).columns if each.confirmed}
    assert confirmed == {"home", "pet"}
    version = version_of(studio.get("/schema", **GIVEN))
    for odd in ("7", "-1", "x", ""):
        reply = studio.client.post(
            "/schema/confirm", data={**sent, "version": version, "question": odd}
        )
        assert reply.status_code == 422
        assert "no such question" in reply.text


def test_a_private_draft_that_found_nothing_says_so(studio, folder):
    text = (
        "format = 1\nrows_max = 100\n[draft]\nepsilon = 0.1\ndelta = 1e-10\n[[attribute]]\n"
        'name = "pet"\ntype = "text"\nvalues = []\nother = "other"\n'
    )
    (folder / "empty.toml").write_text(text)
    words = text_of(studio.get("/schema", table="table.csv", schema="empty.toml"))
    assert "The draft found no value of 1 column ( pet )" in words or "1 column (pet)" in words
    assert "all become “other”" in words


def test_what_a_private_draft_found_is_green_as_long_as_its_cost_is_stated(studio, folder):
    cost = "[draft]\nepsilon = 0.1\ndelta = 1e-10\n"
    text = (
        f'format = 1\nrows_max = 100\nrows_max_confirmed = "draft"\n{cost}'
        '[[attribute]]\nname = "pet"\ntype = "boolean"\nconfirmed = "draft"\n'
        '[[attribute]]\nname = "home"\ntype = "text"\nvalues = ["a"]\nother = "b"\n'
        'confirmed = "draft"\n'
    )
    (folder / "draft.toml").write_text(text)
    page = studio.get("/schema", **GIVEN)
    assert page.count('class="mark public">drafted privately') == 2
    assert "or was drafted with differential privacy" in page
    assert "Confirm" not in page
    sent = {"type": "boolean", "shown_type": "boolean", "values": "no\r\nyes"}
    for ticked, state in (({}, "draft"), ({"confirmed": "on"}, True)):
        assert edit(studio, folder / "draft.toml", "pet", **sent, **ticked).status_code == 200
        found = column(folder / "draft.toml", "pet")
        assert (found.values, found.confirmed) == (("no", "yes"), state)

    (folder / "draft.toml").write_text(text.replace(cost, ""))
    page = studio.get("/schema", **GIVEN)
    assert "The section [draft] is missing." in text_of(page)
    assert "3 entries are not confirmed" in text_of(page)
    assert page.count('class="mark stays">read off the data') == 2
    assert 'value="ready"' not in page


def test_texts_are_shown_in_full_before_they_can_be_confirmed(studio, folder):
    texts = [f"text number {at}" for at in range(80)]
    described = (
        'type = "text"\nvalues = ["' + '", "'.join(texts) + '"]\nother = "other"\n'
        "confirmed = false\n"
    )
    head = "format = 1\nrows_max = 100\n[[attribute]]\n"
    (folder / "draft.toml").write_text(
        f'{head}name = "pet"\n{described}[[attribute]]\nname = "home"\ntype = "boolean"\n'
    )
    page = studio.get("/schema", **GIVEN)
    assert all(f"<li>{each}</li>" in page for each in texts)
    assert 'aria-label="Confirm pet"' not in page
    sent = {**GIVEN, "version": version_of(page), "what": "ready"}
    studio.post("/schema/confirm", **sent)  # what has no question
    assert not column(folder / "draft.toml", "pet").confirmed
    sent["version"] = version_of(studio.get("/schema", **GIVEN))
    studio.post("/schema/answer", **sent, column="0", answer="keep")
    assert column(folder / "draft.toml", "pet").confirmed


def test_a_whole_number_becomes_codes_by_one_click(studio, drafted):
    page = studio.get("/schema", **GIVEN)
    assert 'value="codes"' in page
    at = str(number(drafted, "boats"))
    low, high = column(drafted, "boats").values[0], column(drafted, "boats").values[-1]
    sent = {**GIVEN, "version": version_of(page), "column": at, "answer": "codes"}
    page = studio.post("/schema/answer", **sent)
    found = column(drafted, "boats")
    assert (found.kind, found.values) == ("categorical", tuple(range(low, high + 1)))
    assert not found.confirmed
    assert "\n".join(map(str, range(low, high + 1))) in page  # the form, to be looked at
