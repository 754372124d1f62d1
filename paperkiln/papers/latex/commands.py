"""What LaTeX's own commands leave on the page: tables for typeset.py and its neighbours."""

from __future__ import annotations

import unicodedata

GREEK = {
    name: unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}")
    for name in "alpha beta gamma delta epsilon zeta eta theta iota kappa mu nu xi pi rho sigma "
    "tau upsilon phi chi psi omega".split()
}
SYMBOLS: dict[str, str] = {
    **GREEK,
    **{name.capitalize(): letter.upper() for name, letter in GREEK.items()},
    "lambda": "λ", "Lambda": "Λ", "varepsilon": "ε", "vartheta": "θ", "varphi": "φ",
    "times": "×", "cdot": "·", "ast": "*", "pm": "±", "div": "÷", "approx": "≈", "sim": "~",
    "simeq": "≈", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠", "ne": "≠", "ll": "≪",
    "gg": "≫", "equiv": "≡", "coloneqq": "=", "in": "∈", "to": "→", "rightarrow": "→",
    "Rightarrow": "⇒", "leftarrow": "←", "gets": "←", "mapsto": "→", "infty": "∞", "ell": "ℓ",
    "odot": "⊙", "otimes": "⊗", "oplus": "⊕", "circ": "∘", "sum": "∑", "prod": "∏",
    "partial": "∂", "nabla": "∇", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
    "dots": "…", "ldots": "…", "cdots": "…", "textellipsis": "…", "textendash": "–",
    "textemdash": "—", "textasciitilde": "~", "texttimes": "×", "textbar": "|", "mid": "|",
    "bullet": "•", "textbullet": "•", "dagger": "†", "ddagger": "‡", "checkmark": "✓", "star": "*",
    "textquotesingle": "'", "textbackslash": "\\", "textunderscore": "_", "textless": "<",
    "textgreater": ">", "lbrace": "{", "rbrace": "}", "langle": "⟨", "rangle": "⟩", "lt": "<",
    "gt": ">", "quad": "  ", "qquad": "  ", "space": " ", "thinspace": "\u2009", "ss": "ß",
    "o": "ø", "O": "Ø", "ae": "æ", "aa": "å", "l": "ł", "S": "§", "degree": "°", "percent": "%",
    "min": "min", "max": "max", "log": "log", "exp": "exp", "sin": "sin", "cos": "cos",
    "tanh": "tanh", "arg": "arg", "lim": "lim", "newline": "\n", "linebreak": "\n",
    "LaTeX": "LaTeX", "TeX": "TeX", "top": "⊤", "forall": "∀", "exists": "∃", "cup": "∪",
    "cap": "∩", "subset": "⊂", "setminus": "∖", "cmark": "✓", "xmark": "✗",
    "gtrsim": "≳", "leqslant": "≤", "geqslant": "≥", "coloneq": "=",
    "Longleftrightarrow": "⇔", "Longrightarrow": "⇒", "lesssim": "≲", "gtrapprox": "≳",
    "propto": "∝", "triangleq": "=", "cong": "≅",
    "iff": "⇔", "implies": "⇒", "Leftrightarrow": "⇔", "leftrightarrow": "↔", "uparrow": "↑",
    "downarrow": "↓", "longrightarrow": "→", "rightleftarrows": "⇄", "notin": "∉", "subseteq": "⊆",
    "emptyset": "∅", "wedge": "∧", "vee": "∨", "neg": "¬", "perp": "⊥", "parallel": "∥", "int": "∫",
    "vert": "|", "lvert": "|", "rvert": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖", "colon": ":",
    "prime": "′", "dag": "†", "ddag": "‡", "mod": "mod", "bmod": "mod", "ln": "ln", "det": "det",
    "dim": "dim", "sup": "sup", "inf": "inf", "Pr": "Pr", "textdegree": "°", "textmu": "μ",
    "nobreakspace": "\u00a0", "enspace": " ", "enskip": " ", "i": "i", "j": "j", "oe": "œ",
    "AE": "Æ", "OE": "Œ", "AA": "Å", "L": "Ł", "copyright": "©", "textregistered": "®",
    "texttrademark": "™", "pounds": "£", "backslash": "\\", "lq": "‘", "rq": "’", "slash": "/",
}  # fmt: skip
CHARACTERS = {
    ",": "\u2009", ";": "\u2009", ":": "\u2009", "!": "", " ": " ", "\n": " ", "%": "%", "&": "&",
    "$": "$", "#": "#", "_": "_", "{": "{", "}": "}", "/": "", "-": "", "@": "", "*": "", "": "",
    "|": "|", ">": "", "<": "", "+": "",
}  # fmt: skip
ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "r": "\u030a", "k": "\u0328", "c": "\u0327", "v": "\u030c", "u": "\u0306",
    "H": "\u030b",
}  # fmt: skip

# Commands of which nothing is read, and how many {arguments} go with them.
SILENT: dict[str, int] = {
    **dict.fromkeys(
        "vspace includegraphics bibliographystyle bibliography pagestyle thispagestyle hypersetup "
        "captionsetup graphicspath lstset tikzset pgfplotsset usetikzlibrary color rowcolor "
        "cellcolor columncolor arrayrulecolor phantom hphantom vphantom author date affiliation "
        "affil institute address thanks email todo sout st keywords icmlkeywords icmltitlerunning "
        "titlerunning authorrunning printAffiliationsAndNotice ead orcid ccsdesc SetCell "
        "includeonly nocite label ref eqref autoref cref Cref pageref nameref vref subref cmidrule "
        "cline documentclass PassOptionsToPackage geometry path tnote morecmidrules "
        "newcounter stepcounter refstepcounter value fancyhead fancyfoot lhead rhead chead "
        "IEEEmembership orcidlink hyphenation Crefname newlength newcolumntype printbibliography "
        "addbibresource tcbset sisetup DeclareSIUnit allowdisplaybreaks".split(),
        1,
    ),
    **dict.fromkeys(
        "setlength addtolength setcounter addtocounter fontsize newtheorem theoremstyle "
        "titlespacing cellspacetoplimit titleformat PassOptionsToClass DeclareGraphicsExtensions "
        "settowidth rule definecolor crefname newtcolorbox".split(),
        2,
    ),
    "definecolor": 3, "crefname": 3, "Crefname": 3, "specialrule": 3, "titleformat": 5,
    "titlespacing": 4, "usefont": 4, "fontfamily": 1, "fontseries": 1, "fontshape": 1,
    "newcolumntype": 2, "theoremstyle": 1, "addcontentsline": 3,
    "tableofcontents": 0, "printbibliography": 0, "allowdisplaybreaks": 0, "rule": 2,
    "DeclareGraphicsExtensions": 1, "icmlauthor": 2, "icmlaffiliation": 2, "addlinespace": 0,
    "includepdf": 1, "maketitle": 0, "markboth": 2, "DeclarePairedDelimiter": 3, "IfFileExists": 1,
    "SetKwInOut": 2, "SetKwInput": 2, "icmlcorrespondingauthor": 2, "definecolorset": 4,
}  # fmt: skip
# Commands that show their last argument; the ones before it are how it looks.
STYLED: dict[str, int] = {
    "textcolor": 1, "colorbox": 1, "fcolorbox": 2, "resizebox": 2, "scalebox": 1,
    "rotatebox": 1, "raisebox": 1, "parbox": 1, "adjustbox": 1, "hyperref": 0, "makebox": 0,
    "foreignlanguage": 1, "captionof": 1, "sidecaption": 0, "hyperlink": 1, "hypertarget": 1,
    "pdfbookmark": 1, "operatorname": 0, "mintinline": 1, "stackrel": 1, "overset": 1,
    "underset": 1, "multicolumn": 2,
}  # fmt: skip
# Commands that only say how their text looks. Any other unknown command is a macro whose
# definition did not come with the source: its name is then all there is to read (\\dmodel).
LOOKS = frozenset(
    "text textbf textit textsc texttt textsf textrm textmd textup textsl textnormal textlf emph "
    "underline uline bf it sc tt sf rm em sl bfseries itshape scshape ttfamily sffamily rmfamily "
    "normalfont mdseries upshape slshape mathrm mathbf mathit mathsf mathtt mathcal mathbb "
    "mathfrak mathscr mathnormal boldsymbol bm pmb bold operatorname mbox hbox vbox fbox framebox "
    "ensuremath displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits left right "
    "middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr tiny scriptsize "
    "footnotesize small normalsize large Large LARGE huge Huge centering raggedright raggedleft "
    "noindent indent smallskip medskip bigskip newpage clearpage pagebreak nopagebreak linebreak "
    "nolinebreak hfill vfill hfil dotfill null strut mathstrut unskip ignorespaces protect "
    "expandafter noexpand csname endcsname string the number relax global boxed overline widehat "
    "hat tilde widetilde bar vec dot ddot check breve acute grave underbrace overbrace underset "
    "overset substack mathop mathrel mathbin mathord mathopen mathclose mathpunct notag nonumber "
    "tag begingroup endgroup bgroup egroup toprule midrule bottomrule hline num qty SI si unit "
    "numprint textnumero lowercase uppercase MakeUppercase MakeLowercase acknowledgments "
    "appendices onecolumn twocolumn columnbreak xspace leavevmode nobreak break penalty kern hskip "
    "vskip baselineskip hsize linewidth textwidth columnwidth textheight tabcolsep arraystretch "
    "fboxsep selectfont makecell shortstack thead rowcolors centerline flushleft raggedbottom "
    "flushbottom sloppy fussy newline enspace subcaptionbox subfigure subfloat hspace "
    "includestandalone resizebox xrightarrow xleftarrow stackrel not nobreakdash phantomsection "
    "balance IEEEpeerreviewmaketitle printAffiliationsAndNotice citestyle bibfont today and "
    "thepage arabic roman alph Alph Roman fnsymbol setstretch singlespacing doublespacing "
    "onehalfspacing frontmatter mainmatter backmatter pgfmathsetmacro draw node path fill foreach "
    "coordinate addplot addlegendentry legend tikz pgfplots State Require Ensure For EndFor If "
    "EndIf Else While EndWhile Return Comment Function EndFunction Procedure EndProcedure Call "
    "KwIn KwOut SetKw uIf uElse tcp cmark xmark ding lVert rVert lvert rvert vert Vert langle "
    "rangle choose over atop binom tbinom dbinom iint int oint lor land lnot neg wedge vee perp "
    "parallel propto triangle square blacksquare diamond hbar imath jmath Re Im prime emptyset "
    "varnothing angle colon uparrow downarrow updownarrow Leftarrow Leftrightarrow leftrightarrow "
    "longrightarrow Longrightarrow hookrightarrow searrow nearrow rightharpoonup bigcup bigcap "
    "bigoplus bigotimes bigodot det dim ker sup inf Pr gcd hom deg tan arcsin arccos arctan sinh "
    "cosh ln lg limsup liminf argmax argmin mod bmod pmod supset supseteq subseteq notin ni owns "
    "models vdash triangleq doteq cong asymp prec succ preceq succeq ltimes rtimes bowtie smile "
    "frown amalg uplus sqcap sqcup dag ddag copyright pounds checkmark maltese circledR "
    "textregistered texttrademark textcopyright flat natural sharp clubsuit heartsuit spadesuit "
    "vdots ddots iddots hdots hdotsfor smash mathclap mathllap mathrlap clap llap rlap intertext "
    "shortintertext mathds boldmath hrule uuline ContinuedFloat qed qedhere proof ll gg ldotp "
    "cdotp".split()
)
CITATIONS = frozenset(
    "cite citep citealp citealt parencite autocite footcite supercite textcite citet citeauthor "
    "Citet Citep Textcite citeyear citeyearpar citenum onlinecite shortcite footfullcite "
    "citeaffixed".split()
)
TEXTUAL_CITATIONS = frozenset("textcite citet citeauthor Citet Textcite".split())
HEADINGS: dict[str, int] = {
    "part": 0, "chapter": 0, "section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 4,
    "subparagraph": 5, "frametitle": 3,
}  # fmt: skip
TITLES = frozenset({"title", "icmltitle", "acmtitle", "mlsystitle"})
FRACTIONS = frozenset({"frac", "tfrac", "dfrac", "nicefrac", "sfrac", "cfrac"})
MATH_ENVIRONMENTS = frozenset(
    name + star
    for name in "equation align gather multline eqnarray flalign alignat math displaymath".split()
    for star in ("", "*")
)
MATRICES = frozenset(
    "aligned alignedat gathered array matrix pmatrix bmatrix vmatrix Vmatrix smallmatrix cases "
    "dcases rcases split subarray".split()
)
PICTURES = frozenset({"tikzpicture", "tikzcd", "forest", "circuitikz", "pspicture", "picture"})
PARAGRAPHS = frozenset(  # environments that begin and end a paragraph
    name + star
    for name in "center flushleft flushright quote quotation theorem lemma proposition corollary "
    "definition assumption remark proof example claim algorithmic tcolorbox mdframed frame "
    "keywords IEEEkeywords".split()
    for star in ("", "*")
)
LENGTHS = frozenset("vskip hskip kern mkern mskip penalty vglue hglue raise lower".split())
PARAMETERS = (  # the ends of the names of TeX's parameters, as in \parskip=0pt
    "skip", "indent", "sep", "margin", "penalty", "badness", "tolerance", "fuzz", "width", "height",
    "level", "output", "version",
)  # fmt: skip
STATEMENTS = frozenset(  # of an algorithm, each a line of its own
    "State STATE Statex For FOR ForAll FORALL While WHILE If IF ElsIf ELSIF Else ELSE EndFor "
    "ENDFOR EndWhile ENDWHILE EndIf ENDIF Return RETURN Require REQUIRE Ensure ENSURE Repeat Until "
    "KwIn KwOut KwData KwResult Procedure EndProcedure Function EndFunction".split()
)
UNITS = {
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E", "milli": "m",
    "micro": "μ", "nano": "n", "byte": "B", "bit": "bit", "second": "s", "minute": "min",
    "hour": "h", "day": "d", "hertz": "Hz", "watt": "W", "joule": "J", "meter": "m", "gram": "g",
    "percent": "%", "per": "/", "flop": "FLOP", "flops": "FLOPS", "kibi": "Ki", "mebi": "Mi",
    "gibi": "Gi",
}  # fmt: skip
TABULARS: dict[str, int] = {  # and the arguments before the cells
    "tabular": 1, "tabular*": 2, "tabularx": 2, "tabulary": 2, "longtable": 1, "tabu": 1,
    "xltabular": 2, "supertabular": 1, "tblr": 1, "longtblr": 1, "NiceTabular": 1,
}  # fmt: skip
FLOATS = frozenset(
    name + star
    for name in "table figure wraptable wrapfigure sidewaystable longtable minipage "
    "subtable subfigure SCtable margintable threeparttable algorithm teaserfigure".split()
    for star in ("", "*")
)
ENVIRONMENT_ARGUMENTS: dict[str, int] = {
    "minipage": 1, "wraptable": 2, "wrapfigure": 2, "subfigure": 1, "subtable": 1, "array": 1,
    "adjustbox": 1, "multicols": 1, "alignat": 1, "alignat*": 1, "CJK": 2, "CJK*": 2, "spacing": 1,
    "adjustwidth": 2, "list": 2, "textblock": 1, "beamercolorbox": 1, "columns": 0,
}  # fmt: skip
LISTS = frozenset(
    name + star
    for name in "itemize enumerate description compactitem compactenum inparaenum tight_itemize "
    "tightemize noitemize list".split()
    for star in ("", "*")
)
# What an author's macro may not redefine: style files do, and then a section is no section.
PROTECTED = frozenset(
    {*HEADINGS, *TITLES, *CITATIONS, *TABULARS, *FLOATS, *LISTS, *MATH_ENVIRONMENTS, *FRACTIONS}
    | {"begin", "end", "item", "caption", "footnote", "footnotetext", "abstract", "appendix"}
    | {"input", "include", "document", "textbf", "emph", "text", "label", "ref", "maketitle"}
    | {"else", "fi", "if", "iftrue", "iffalse", "newif", "let", "usepackage"}
    | {"multirow", "multicolumn", "hline", "toprule", "midrule", "bottomrule", "author", "url"}
    | {"left", "right", "mathrm", "mathbf", "bibliography", "newcommand", "def"}
)
