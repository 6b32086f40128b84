"""How elements are spelled, with their atomic numbers, and one spelling of other names."""

SYMBOLS: tuple[str, ...] = tuple(
    "X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se "
    "Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy "
    "Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf "
    "Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og".split()
)
"""Element symbols; the index is the atomic number."""

ATOMIC_NUMBERS: dict[str, int] = {symbol: number for number, symbol in enumerate(SYMBOLS)}

MAX_ATOMIC_NUMBER = 86
"""Rn, the heaviest element that the engine computes."""


def symbol_of(number: int) -> str:
    """Element symbol of an atomic number: X for 0, such as (Z=200) where there is no element."""
    return SYMBOLS[number] if 0 <= number < len(SYMBOLS) else f"(Z={number})"


_LEFT_OUT = str.maketrans("", "", "-_ ")


def plain_name(name: str) -> str:
    """The spelling, in small letters: of basis sets, as PySCF reads them, and of datasets."""
    return name.lower().translate(_LEFT_OUT)
