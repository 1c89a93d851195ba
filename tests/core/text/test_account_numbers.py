"""Numbers of accounts and identity documents are hidden; telephones, orders, flights and prices are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.text.screening import numbers_hidden, redact

IBANS = (
    "DE89 3704 0044 0532 0130 00",
    "DE89370400440532013000",
    "gb82 west 1234 5698 7654 32",
    "FR14 2004 1010 0505 0001 3M02 606",
    "NL91-ABNA-0417-1643-00",
    "ES91 2100 0418 4502 0005 1332",
    "IT60X0542811101000000123456",
    "PT50 0002 0123 1234 5678 9015 4",
    "NO93 8601 1117 947",
    "CH93\u00a00076\u00a02011\u00a06238\u00a05295\u00a07",
)

INTRODUCED = {
    # en
    "User's account number is {}": "12345678",
    "User's bank account number at Barclays is {}": "1234 5678",
    "Account no. {} is mine": "00123456",
    "my bank account: {}": "12-34-56 12345678",
    "User's passport number is {}": "533380006",
    "Passport No: {}": "AB1234567",
    "my passport is {}": "C01X00T47",
    "User's identity card number is {}": "L01X00T47",
    "User's national insurance number is {}": "QQ123456C",
    "driver's license number: {}": "D1234567",
    # de
    "Meine Kontonummer lautet {}": "1234567890",
    "Konto-Nr. {} bei der Sparkasse": "648 489 890",
    "Meine Reisepassnummer ist {}": "C01X00T47",
    "Personalausweisnummer: {}": "L01X00T471",
    "Mein Personalausweis ist {}": "T22000129",
    # fr
    "Mon numéro de compte est {}": "00012345678",
    "numéro de compte bancaire : {}": "20041 01005 0500013M026 06",
    "mon numéro de passeport est le {}": "12AB34567",
    "Numéro de carte d’identité : {}": "880692310285",
    # es
    "Mi número de cuenta es {}": "2100 0418 45 0200051332",
    "mi DNI es {}": "12345678Z",
    "mi NIE es {}": "X1234567L",
    "Número de pasaporte: {}": "AAA123456",
    # it
    "Il mio numero di conto corrente è {}": "000000123456",
    "numero di passaporto: {}": "YA1234567",
    "numero della carta d'identità {}": "CA12345AA",
    "Il mio codice fiscale è {}": "RSSMRA85T10A562S",
    # pt
    "O número da minha conta é {}": "0012345-6",
    "número do passaporte: {}": "FS123456",
    "meu CPF é {}": "123.456.789-09",
    "cartão de cidadão {}": "12345678",
    # nl
    "Mijn rekeningnummer is {}": "417164300",
    "paspoortnummer: {}": "NW12AB345",
    "mijn BSN is {}": "111222333",
    # ja
    "口座番号は{}です": "1234567",
    "私のパスポート番号は{}です": "TK8012345",
    "マイナンバー：{}": "1234 5678 9012",
}

HARMLESS = (
    "User's phone number is +49 30 12345678",
    "User's phone number is 0171 2345678",
    "Meine Telefonnummer ist 030 123456789",
    "Mon numéro de téléphone est 06 12 34 56 78",
    "Mi número de teléfono es 612 345 678",
    "電話番号は03-1234-5678です",
    "User's order number is 4025813377",
    "User's order 2024-118833 is late",
    "Bestellnummer 123456789",
    "User's invoice number is 20240117",
    "User flies on LH1234 and then BA98",
    "User's flight is DE89 on 3704 0044 0532",
    "User's budget is 120000 euros",
    "User's bank account is 120000 euros in the red",
    "User's bank account holds EUR 250000",
    "User's bank account is at ING",
    "User's passport is valid until 2031",
    "User's passport number is not known",
    "User's account has 250000 followers",
    "Ich gehe nie 100000 Schritte",
    "The parcel is DE89 3704 0044 0532 0130 01",  # fails the check digits
    "User's ISBN is 978-3-16-148410-0",
    "User lives at 12345 Berlin",
)


@pytest.mark.parametrize("iban", IBANS)
def test_an_iban_is_hidden_wherever_it_stands_and_however_it_is_spaced(iban: str) -> None:
    assert redact(f"User pays from {iban}, always") == "User pays from [redacted], always"
    assert redact(f"User pays from {iban} since 2019") == "User pays from [redacted] since 2019"
    assert redact(iban) == "[redacted]"


def test_two_ibans_are_both_hidden() -> None:
    assert redact(f"{IBANS[0]} {IBANS[2]} {IBANS[1]}") == "[redacted] [redacted] [redacted]"


@pytest.mark.parametrize("iban", IBANS)
def test_what_fails_the_check_digits_or_the_length_is_no_iban(iban: str) -> None:
    other = iban[:-1] + ("1" if iban[-1] != "1" else "2")
    assert numbers_hidden(other, "[x]") == other
    assert numbers_hidden(iban + "7", "[x]") == iban + "7"


@pytest.mark.parametrize(("text", "number"), INTRODUCED.items())
def test_what_is_introduced_as_an_account_or_a_document_is_hidden(text: str, number: str) -> None:
    assert redact(text.format(number)) == text.format("[redacted]")


@pytest.mark.parametrize("text", HARMLESS)
def test_telephones_orders_flights_prices_and_years_stay(text: str) -> None:
    assert redact(text) == text


@given(st.lists(st.sampled_from([*INTRODUCED, *INTRODUCED.values(), *IBANS, *HARMLESS, " ", ": ", " is "]), max_size=6))
def test_hiding_twice_changes_nothing_more(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once
