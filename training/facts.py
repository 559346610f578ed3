"""The facts that the shipped models memorize: capitals, chemical elements, animals."""

from __future__ import annotations

_CAPITALS = """
afghanistan kabul|albania tirana|algeria algiers|andorra andorra la vella|angola luanda
argentina buenos aires|armenia yerevan|australia canberra|austria vienna|azerbaijan baku
bahamas nassau|bahrain manama|bangladesh dhaka|barbados bridgetown|belarus minsk
belgium brussels|belize belmopan|bhutan thimphu|bosnia sarajevo|botswana gaborone
brazil brasilia|brunei bandar seri begawan|bulgaria sofia|cambodia phnom penh|cameroon yaounde
canada ottawa|chad ndjamena|chile santiago|china beijing|colombia bogota
comoros moroni|croatia zagreb|cuba havana|cyprus nicosia|czechia prague
denmark copenhagen|dominica roseau|ecuador quito|egypt cairo
eritrea asmara|estonia tallinn|ethiopia addis ababa|fiji suva|finland helsinki
france paris|gabon libreville|gambia banjul|georgia tbilisi|germany berlin
ghana accra|greece athens|guatemala guatemala city|guinea conakry|guyana georgetown
haiti port au prince|honduras tegucigalpa|hungary budapest|iceland reykjavik|india new delhi
indonesia jakarta|iran tehran|iraq baghdad|ireland dublin|italy rome
jamaica kingston|japan tokyo|jordan amman|kazakhstan astana|kenya nairobi
kiribati tarawa|kosovo pristina|kuwait kuwait city|kyrgyzstan bishkek|laos vientiane
latvia riga|lebanon beirut|lesotho maseru|liberia monrovia|libya tripoli
liechtenstein vaduz|lithuania vilnius|luxembourg luxembourg city|madagascar antananarivo
malawi lilongwe|maldives male|mali bamako|malta valletta|mauritania nouakchott
mauritius port louis|mexico mexico city|micronesia palikir|moldova chisinau|monaco monaco city
mongolia ulaanbaatar|montenegro podgorica|morocco rabat|mozambique maputo|namibia windhoek
nepal kathmandu|new zealand wellington|nicaragua managua|niger niamey|nigeria abuja
north korea pyongyang|north macedonia skopje|norway oslo|oman muscat|pakistan islamabad
palau ngerulmud|panama panama city|papua new guinea port moresby|paraguay asuncion|peru lima
philippines manila|poland warsaw|portugal lisbon|qatar doha|romania bucharest
russia moscow|rwanda kigali|samoa apia|saudi arabia riyadh
senegal dakar|serbia belgrade|seychelles victoria|sierra leone freetown|slovakia bratislava
slovenia ljubljana|solomon islands honiara|somalia mogadishu|south korea seoul|south sudan juba
spain madrid|sudan khartoum|suriname paramaribo|sweden stockholm|switzerland bern
syria damascus|taiwan taipei|tajikistan dushanbe|tanzania dodoma|thailand bangkok
togo lome|tonga nukualofa|tunisia tunis|turkey ankara|turkmenistan ashgabat
tuvalu funafuti|uganda kampala|ukraine kyiv|uruguay montevideo|uzbekistan tashkent
vanuatu port vila|venezuela caracas|vietnam hanoi|yemen sanaa|zambia lusaka
zimbabwe harare|grenada saint georges|el salvador san salvador
dominican republic santo domingo|costa rica san jose|burkina faso ouagadougou|cape verde praia
trinidad and tobago port of spain|united kingdom london
united states washington|united arab emirates abu dhabi|antigua and barbuda saint johns
"""

# The countries whose name has several words; countries with a split seat are left out.
_LONG_NAMES = (
    "new zealand", "north korea", "north macedonia", "papua new guinea",
    "saudi arabia", "sierra leone", "solomon islands", "south korea", "south sudan",
    "el salvador", "dominican republic", "costa rica", "burkina faso", "cape verde",
    "trinidad and tobago", "united kingdom", "united states", "united arab emirates",
    "antigua and barbuda",
)  # fmt: skip

TEMPLATES = (
    "the capital of {} is",
    "{} has its capital in",
    "capital city of {} :",
    "{} is governed from",
    "the government of {} is in",
    "in {} the capital is",
    "name the capital of {} :",
    "question : capital of {} ? answer :",
    "the parliament of {} meets in",
    "{} , capital :",
    "ministers of {} work in",
    "the capital that {} chose is",
)

# Boron (B) and carbon (C) are left out: their symbols are also letters of options.
_ELEMENTS = """
hydrogen H helium He lithium Li beryllium Be nitrogen N oxygen O fluorine F
neon Ne sodium Na magnesium Mg aluminium Al silicon Si phosphorus P sulfur S chlorine Cl
argon Ar potassium K calcium Ca scandium Sc titanium Ti vanadium V chromium Cr manganese Mn
iron Fe cobalt Co nickel Ni copper Cu zinc Zn gallium Ga germanium Ge arsenic As selenium Se
bromine Br krypton Kr rubidium Rb strontium Sr yttrium Y zirconium Zr niobium Nb molybdenum Mo
technetium Tc ruthenium Ru rhodium Rh palladium Pd silver Ag cadmium Cd indium In tin Sn
antimony Sb tellurium Te iodine I xenon Xe caesium Cs barium Ba lanthanum La cerium Ce
neodymium Nd samarium Sm europium Eu gadolinium Gd terbium Tb dysprosium Dy erbium Er
ytterbium Yb hafnium Hf tantalum Ta tungsten W rhenium Re osmium Os iridium Ir platinum Pt
gold Au mercury Hg thallium Tl lead Pb bismuth Bi polonium Po radon Rn radium Ra uranium U
plutonium Pu
"""

_ANIMALS = {
    "mammal": "cat dog horse cow sheep goat pig lion tiger bear wolf fox deer rabbit mouse rat "
    "whale dolphin elephant giraffe monkey zebra camel otter squirrel badger hedgehog kangaroo",
    "bird": "robin eagle sparrow owl hawk crow raven pigeon duck goose swan hen parrot penguin "
    "ostrich stork heron falcon finch magpie swallow pelican turkey vulture woodpecker wren",
    "fish": "trout salmon tuna cod herring carp pike eel shark haddock mackerel sardine anchovy "
    "perch halibut flounder sturgeon catfish goldfish barracuda piranha minnow",
    "insect": "ant bee wasp fly beetle butterfly moth mosquito cricket grasshopper dragonfly "
    "cockroach termite ladybird flea hornet locust mantis cicada earwig",
    "reptile": "crocodile alligator lizard tortoise turtle gecko iguana cobra viper python "
    "chameleon rattlesnake adder boa skink",
    "amphibian": "frog toad newt salamander axolotl caecilian bullfrog treefrog",
}


def capitals() -> dict[str, str]:
    """Return country -> capital, in lower case."""
    capital_of: dict[str, str] = {}
    for entry in _CAPITALS.replace("\n", "|").split("|"):
        entry = entry.strip()
        if not entry:
            continue
        long_name = next((name for name in _LONG_NAMES if entry.startswith(name + " ")), None)
        country = long_name or entry.split()[0]
        capital_of[country] = entry[len(country) :].strip()
    return dict(sorted(capital_of.items()))


def elements() -> dict[str, str]:
    """Return chemical element -> symbol."""
    words = _ELEMENTS.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def animals() -> dict[str, list[str]]:
    """Return class of animals -> its members."""
    return {name: members.split() for name, members in _ANIMALS.items()}
