"""Prices are whole numbers of cents."""

SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}


def parse_price(text):
    """Return the cents of a text like "€ 1,234.50"."""
    digits = text.strip().lstrip("€$£ ").replace(",", "")
    whole, _, fraction = digits.partition(".")
    return int(whole or 0) * 100 + int((fraction + "00")[:2])


def format_price(cents, currency="EUR"):
    """Return a text like "€ 1,234.50"."""
    sign = "-" if cents < 0 else ""
    whole, fraction = divmod(abs(cents), 100)
    return f"{sign}{SYMBOLS[currency]} {whole:,}.{fraction:02}"


def discounted(cents, percent):
    """Return a price without a percentage of it, rounded to whole cents."""
    if not 0 <= percent <= 100:
        raise ValueError("percent must be from 0 to 100")
    return round(cents * (100 - percent) / 100)


def with_tax(cents, rate):
    """Return a price with tax; a rate of 0.2 adds a fifth."""
    return round(cents * (1 + rate))


def cheapest(prices):
    """Return the name of the lowest price of a dictionary; the first of several."""
    return min(prices, key=prices.get)
