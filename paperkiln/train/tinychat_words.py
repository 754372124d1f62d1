"""The words that fill the slots of TinyChat's phrases, and what is said around any of them."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SLOTS: dict[str, tuple[str, ...]] = {
    "food": _words("pizza soup rice bread pasta cake cheese salad toast curry pie honey chocolate"),
    "drink": _words("tea coffee milk water juice lemonade cocoa cider"),
    "colour": _words("red blue green yellow pink purple gold silver white black brown"),
    "animal": _words("cat dog rabbit horse fox bird frog mouse duck goat bear lamb hedgehog"),
    "weather": _words("sunny rainy windy cloudy snowy foggy stormy"),
    "hobby": _words("reading drawing painting dancing swimming running gardening knitting fishing")
    + _words("climbing skating cycling"),
    "mood": _words("happy calm excited proud cheerful joyful"),
    "low": _words("sad tired lonely worried upset nervous"),
    "music": _words("piano guitar violin flute harp trumpet cello drum"),
    "place": _words("Paris Rome London Tokyo Cairo Oslo Lima Venice Athens Berlin Madrid"),
    "hour": _words("one two three four five six seven eight nine ten eleven twelve"),
    # Many names, so that the model has to learn to copy one instead of knowing a few by heart.
    "name": _words(
        "Ada Adam Alba Alex Alma Amir Ana Anton Aria Arlo Ayla Bela Ben Bibi Boris Bruno Carla "
        "Cleo Clara Cora Dan Dana David Dina Eden Eli Ella Elsa Emil Emma Erik Eva Fay Felix Finn "
        "Flora Frida Gina Greta Gus Hana Hugo Ida Igor Ines Iris Isa Ivan Jack Jade Jan Jonas "
        "Julia Juno Kai Karim Kim Klara Lars Laura Lena Leo Lila Lin Lola Lou Luca Lucy Luna Maja "
        "Marco Maria Mark Max Maya Mia Mila Milo Mina Nadia Nico Nina Noah Nora Olga Oli Omar "
        "Oscar Otto Paul Petra Ravi Rita Rosa Ruben Sam Sara Sofia Sven Tara Theo Tim Tina Tom "
        "Uma Vera Viktor Wanda Will Xenia Yara Yuki Zara Zoe"
    ),
}

# What a user may put before a question; a held-out question does not count as new behind one.
OPENERS = ("So, ", "Well, ", "Hey, ", "Please tell me, ", "Hi Pip! ", "And ", "Tell me, ")

# Asked of the kinds that have a `because`.
WHY = "Why? / Why (do you like it|is that|that)? / What is so good about it?"
