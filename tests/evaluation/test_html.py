"""HTML elements: escaping and attributes."""

from deniable.evaluation.html import Markup, figure, section, table, tag


def test_text_is_escaped_and_markup_is_not():
    assert tag("p", "<", Markup("<b>x</b>"), title='"') == '<p title="&quot;">&lt;<b>x</b></p>'
    assert tag("line", x1=1.0, stroke_width=0.25) == '<line x1="1" stroke-width="0.25"/>'
    assert "&lt;i&gt;" in table(["<i>"], [["x"]])


def test_columns_after_the_text_columns_are_numbers():
    text = table(["name", "kind", "count"], [["a", "b", "3"]], left=2)
    assert text.count('class="number"') == 2
    assert '<td class="number">3</td>' in text


def test_the_caption_is_outside_the_scrolling_frame():
    text = table(["a"], [["b"]], caption="Counts < 5")
    assert text.index("Counts &lt; 5</p>") < text.index('class="scroll"')
    assert 'aria-label="Counts &lt; 5"' in text
    assert "caption" not in table(["a"], [["b"]])


def test_sections_and_figures_escape_their_titles():
    assert section("a & b", "c") == "<section><h2>a &amp; b</h2>c</section>"
    assert figure(Markup("<svg></svg>"), "x > y").endswith(
        "<figcaption>x &gt; y</figcaption></figure>"
    )
