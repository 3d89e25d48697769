"""The page in a real Chromium: phone and desk, light and dark, on paper, for screen readers, and off the network."""

import pytest

from dialometer.report.theme import DARK, LIGHT

pytestmark = pytest.mark.browser
VIEWS = [(1440, 900), (820, 1100), (390, 844), (320, 640)]


@pytest.fixture
def open_page(browser, rendered):
    contexts = []

    def opened(width=1440, height=900, scheme="light", **more):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.goto((rendered / "index.html").as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def rgb(colour):
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), VIEWS)
def test_nothing_sticks_out_and_nothing_is_fetched(open_page, width, height, scheme):
    page = open_page(width, height, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(page.asked) == 1
    assert page.said == []


def test_colours_of_page_and_drawings_follow_the_scheme(open_page):
    for scheme, theme in (("light", LIGHT), ("dark", DARK)):
        page = open_page(scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == rgb(theme["paper"])
        fill = "getComputedStyle(document.querySelector('.chart-drawing text[fill]')).fill"
        assert page.evaluate(fill) in (rgb(theme["ink"]), rgb(theme["muted"]))
        left = page.evaluate(
            """() => [...document.querySelectorAll('.chart-drawing [fill], .chart-drawing [stroke]')]
            .flatMap(e => [getComputedStyle(e).fill, getComputedStyle(e).stroke]).filter(c => c.startsWith('rgb('))"""
        )
        assert set(left) <= {rgb(colour) for colour in theme.values()}, "a colour that the theme does not know"


def test_charts_take_their_narrow_form_where_there_is_no_room(open_page):
    for width, visible, hidden in ((1440, "wide", "narrow"), (390, "narrow", "wide")):
        page = open_page(width)
        chart = page.locator("#figure-ranking")
        assert chart.locator(f".{visible}").is_visible()
        assert not chart.locator(f".{hidden}").is_visible()
        box = chart.locator(f".{visible} svg").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_text_of_charts_is_large_enough_on_a_phone(open_page):
    page = open_page(390)
    heights = page.evaluate(
        """() => [...document.querySelectorAll('.narrow svg')].map(svg =>
        svg.getBoundingClientRect().width / svg.viewBox.baseVal.width * 12)"""
    )
    assert min(heights) >= 10


def test_readable_without_script(open_page):
    page = open_page(java_script_enabled=False)
    assert page.get_by_text("Raters who saw an anchor gave ratings 17% higher").is_visible()
    assert page.locator("#figure-ratings_by_condition svg:visible").count() == 1
    page.locator("nav a", has_text="Leaderboard").click()
    page.wait_for_url("**#section-leaderboard")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_barriers(open_page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    results = axe.Axe().run(open_page(width, scheme=scheme, bypass_csp=True))
    found = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in results.response["violations"]]
    assert found == []


def test_on_paper(open_page):
    page = open_page(scheme="dark")
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf[:5] == b"%PDF-"
    assert 4 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 14
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == rgb(LIGHT["paper"])
    assert not page.locator("nav").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.scroll.tall')).maxHeight") == "none"


def test_the_first_screen_holds_the_answer_the_numbers_and_the_picture(open_page):
    page = open_page(1440, 900)
    for locator in (".answer", ".certainty", ".card >> nth=3", "#figure-ratings_by_condition", "#table-exclusions h3"):
        box = page.locator(locator).bounding_box()
        assert box["y"] + box["height"] <= 900, locator
