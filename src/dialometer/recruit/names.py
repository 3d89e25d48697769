"""Countries and languages by name and code (ISO 3166 and 639), so that a misspelt one is found before raters are asked."""

from __future__ import annotations

from collections.abc import Mapping

_COUNTRIES = """
AD Andorra; AE United Arab Emirates; AF Afghanistan; AG Antigua & Barbuda; AI Anguilla; AL Albania; AM Armenia; AO
Angola; AQ Antarctica; AR Argentina; AS American Samoa; AT Austria; AU Australia; AW Aruba; AX Åland Islands; AZ
Azerbaijan; BA Bosnia & Herzegovina; BB Barbados; BD Bangladesh; BE Belgium; BF Burkina Faso; BG Bulgaria; BH
Bahrain; BI Burundi; BJ Benin; BL St. Barthélemy; BM Bermuda; BN Brunei; BO Bolivia; BQ Caribbean Netherlands; BR
Brazil; BS Bahamas; BT Bhutan; BV Bouvet Island; BW Botswana; BY Belarus; BZ Belize; CA Canada; CC Cocos (Keeling)
Islands; CD Democratic Republic of the Congo; CF Central African Republic; CG Republic of the Congo; CH Switzerland;
CI Côte d'Ivoire; CK Cook Islands; CL Chile; CM Cameroon; CN China; CO Colombia; CR Costa Rica; CU Cuba; CV Cape
Verde; CW Curaçao; CX Christmas Island; CY Cyprus; CZ Czechia; DE Germany; DJ Djibouti; DK Denmark; DM Dominica; DO
Dominican Republic; DZ Algeria; EC Ecuador; EE Estonia; EG Egypt; EH Western Sahara; ER Eritrea; ES Spain; ET
Ethiopia; FI Finland; FJ Fiji; FK Falkland Islands; FM Micronesia; FO Faroe Islands; FR France; GA Gabon; GB United
Kingdom; GD Grenada; GE Georgia; GF French Guiana; GG Guernsey; GH Ghana; GI Gibraltar; GL Greenland; GM Gambia; GN
Guinea; GP Guadeloupe; GQ Equatorial Guinea; GR Greece; GS South Georgia & South Sandwich Islands; GT Guatemala; GU
Guam; GW Guinea-Bissau; GY Guyana; HK Hong Kong; HM Heard & McDonald Islands; HN Honduras; HR Croatia; HT Haiti; HU
Hungary; ID Indonesia; IE Ireland; IL Israel; IM Isle of Man; IN India; IO British Indian Ocean Territory; IQ Iraq;
IR Iran; IS Iceland; IT Italy; JE Jersey; JM Jamaica; JO Jordan; JP Japan; KE Kenya; KG Kyrgyzstan; KH Cambodia; KI
Kiribati; KM Comoros; KN St. Kitts & Nevis; KP North Korea; KR South Korea; KW Kuwait; KY Cayman Islands; KZ
Kazakhstan; LA Laos; LB Lebanon; LC St. Lucia; LI Liechtenstein; LK Sri Lanka; LR Liberia; LS Lesotho; LT Lithuania;
LU Luxembourg; LV Latvia; LY Libya; MA Morocco; MC Monaco; MD Moldova; ME Montenegro; MF St. Martin; MG Madagascar;
MH Marshall Islands; MK North Macedonia; ML Mali; MM Myanmar; MN Mongolia; MO Macao; MP Northern Mariana Islands; MQ
Martinique; MR Mauritania; MS Montserrat; MT Malta; MU Mauritius; MV Maldives; MW Malawi; MX Mexico; MY Malaysia; MZ
Mozambique; NA Namibia; NC New Caledonia; NE Niger; NF Norfolk Island; NG Nigeria; NI Nicaragua; NL Netherlands; NO
Norway; NP Nepal; NR Nauru; NU Niue; NZ New Zealand; OM Oman; PA Panama; PE Peru; PF French Polynesia; PG Papua New
Guinea; PH Philippines; PK Pakistan; PL Poland; PM St. Pierre & Miquelon; PN Pitcairn Islands; PR Puerto Rico; PS
Palestinian Territories; PT Portugal; PW Palau; PY Paraguay; QA Qatar; RE Réunion; RO Romania; RS Serbia; RU Russia;
RW Rwanda; SA Saudi Arabia; SB Solomon Islands; SC Seychelles; SD Sudan; SE Sweden; SG Singapore; SH St. Helena; SI
Slovenia; SJ Svalbard & Jan Mayen; SK Slovakia; SL Sierra Leone; SM San Marino; SN Senegal; SO Somalia; SR Suriname;
SS South Sudan; ST São Tomé & Príncipe; SV El Salvador; SX Sint Maarten; SY Syria; SZ Eswatini; TC Turks & Caicos
Islands; TD Chad; TF French Southern Territories; TG Togo; TH Thailand; TJ Tajikistan; TK Tokelau; TL Timor-Leste;
TM Turkmenistan; TN Tunisia; TO Tonga; TR Türkiye; TT Trinidad & Tobago; TV Tuvalu; TW Taiwan; TZ Tanzania; UA
Ukraine; UG Uganda; UM U.S. Outlying Islands; US United States; UY Uruguay; UZ Uzbekistan; VA Vatican City; VC St.
Vincent & Grenadines; VE Venezuela; VG British Virgin Islands; VI U.S. Virgin Islands; VN Vietnam; VU Vanuatu; WF
Wallis & Futuna; WS Samoa; XK Kosovo; YE Yemen; YT Mayotte; ZA South Africa; ZM Zambia; ZW Zimbabwe
"""
_LANGUAGES = """
af Afrikaans; ak Akan; am Amharic; ar Arabic; as Assamese; ast Asturian; az Azerbaijani; ba Bashkir; be Belarusian;
bg Bulgarian; bm Bambara; bn Bangla; bo Tibetan; br Breton; bs Bosnian; ca Catalan; ceb Cebuano; ckb Central
Kurdish; cmn Mandarin; co Corsican; cs Czech; cy Welsh; da Danish; de German; dz Dzongkha; el Greek; en English; eo
Esperanto; es Spanish; et Estonian; eu Basque; fa Persian; fi Finnish; fil Filipino; fj Fijian; fo Faroese; fr
French; fy Western Frisian; ga Irish; gd Scottish Gaelic; gl Galician; gn Guarani; gsw Swiss German; gu Gujarati; ha
Hausa; haw Hawaiian; he Hebrew; hi Hindi; hr Croatian; ht Haitian Creole; hu Hungarian; hy Armenian; id Indonesian;
ig Igbo; is Icelandic; it Italian; ja Japanese; jv Javanese; ka Georgian; kk Kazakh; kl Kalaallisut; km Khmer; kn
Kannada; ko Korean; ku Kurdish; ky Kyrgyz; la Latin; lb Luxembourgish; lg Ganda; ln Lingala; lo Lao; lt Lithuanian;
lv Latvian; mg Malagasy; mi Māori; mk Macedonian; ml Malayalam; mn Mongolian; mr Marathi; ms Malay; mt Maltese; my
Burmese; ne Nepali; nl Dutch; no Norwegian; nso Northern Sotho; ny Nyanja; oc Occitan; om Oromo; or Odia; pa
Punjabi; pl Polish; ps Pashto; pt Portuguese; qu Quechua; rm Romansh; ro Romanian; ru Russian; rw Kinyarwanda; sa
Sanskrit; sc Sardinian; sd Sindhi; se Northern Sami; si Sinhala; sk Slovak; sl Slovenian; sm Samoan; sn Shona; so
Somali; sq Albanian; sr Serbian; ss Swati; su Sundanese; sv Swedish; sw Swahili; ta Tamil; te Telugu; tg Tajik; th
Thai; ti Tigrinya; tk Turkmen; tl Tagalog; tn Tswana; tr Turkish; ts Tsonga; tt Tatar; ug Uyghur; uk Ukrainian; ur
Urdu; uz Uzbek; vi Vietnamese; wo Wolof; xh Xhosa; yi Yiddish; yo Yoruba; yue Cantonese; zh Chinese; zu Zulu
"""
_ALSO_CALLED = {
    "bosnia and herzegovina": "BA",
    "burma": "MM",
    "czech republic": "CZ",
    "great britain": "GB",
    "holland": "NL",
    "ivory coast": "CI",
    "korea": "KR",
    "macedonia": "MK",
    "russian federation": "RU",
    "trinidad and tobago": "TT",
    "turkey": "TR",
    "uk": "GB",
    "united states of america": "US",
    "usa": "US",
    "viet nam": "VN",
    "bengali": "bn",
    "farsi": "fa",
    "flemish": "nl",
    "gaelic": "gd",
    "maori": "mi",
    "chinese (mandarin)": "cmn",
    "mandarin chinese": "cmn",
    "chinese (cantonese)": "yue",
}


def _table(text: str) -> dict[str, str]:
    """Code to name."""
    entries = " ".join(text.split()).split("; ")
    return dict(entry.split(" ", 1) for entry in entries)


COUNTRIES: Mapping[str, str] = _table(_COUNTRIES)
LANGUAGES: Mapping[str, str] = _table(_LANGUAGES)


def known_name(text: str, table: Mapping[str, str]) -> str | None:
    """The usual name of a country or language that is given by name, by code or by another name; None if it is unknown."""
    plain = " ".join(text.split())
    if plain.upper() in table or plain.lower() in table:
        return table.get(plain.upper()) or table.get(plain.lower())
    code = _ALSO_CALLED.get(plain.casefold(), "")
    if code in table:
        return table[code]
    return next((name for name in table.values() if name.casefold() == plain.casefold()), None)


def names_of(text: str, table: Mapping[str, str]) -> list[str]:
    """Every name of the same country or language, as platforms may call it: as given, its usual name, other names."""
    usual = known_name(text, table)
    codes = [code for code, name in table.items() if name == usual]
    aliases = [name for name, code in _ALSO_CALLED.items() if code in codes]
    return [text, *([usual] if usual else []), *aliases]
