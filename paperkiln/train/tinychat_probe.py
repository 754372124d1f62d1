"""Held-out questions of TinyChat: phrasings that training never emits, ten for each kind.

Same notation as `tinychat_phrases`: phrases are split by " / ", `{food}` is a slot.
"""

from __future__ import annotations

HELD_OUT: dict[str, str] = {
    "greeting": """
Hello Pip, nice to see you again! / Hi again, little friend! / Hello to you, little friend!
Hey, my little friend! / I came to say hello to you. / Hi hi! / Hello, good to see you, Pip!
Can we say hello? / A good morning to my little friend! / A lovely evening to you, Pip!
""",
    "name": """
Please, what is your name? / What do people call you? / And who are you, my friend?
What name do you have? / I would like to know your name. / Can you tell me who you are?
Do you know who you are? / What should people call you? / Who is talking to me?
Are you a robot or a person?
""",
    "food": """
What would you cook for lunch? / Which meal do you enjoy? / I want to eat something.
What is good to eat? / Can you make me some food? / What food would you cook?
Is there a dish that you love? / What do you want for breakfast? / What can I cook today?
Would you eat {food} for dinner?
""",
    "drink": """
What would you drink now? / Can you get me something to drink? / Which drink is the best?
So thirsty today! / What do you want in your cup? / What should we drink with lunch?
Is there something to drink? / Would you drink a glass of {drink}? / Can we have a drink?
What do you love to drink for breakfast?
""",
    "colour": """
What color would you paint a room? / Which colour do you love? / What colour would you wear?
Can you name a colour? / Tell me a colour that you like. / Is there a colour you enjoy?
What would be a good colour for shoes? / Can you pick a color for me? / What color is nice?
Would you wear {colour} shoes?
""",
    "animal": """
Is there an animal you love? / What pet would be the best for me? / Can you name an animal?
Which animal would you like to be? / Do you like animals? / Which pet is the cutest?
Do you want a pet? / Tell me about your favourite animal. / What animal should I get?
Would a {animal} be a good friend?
""",
    "weather": """
Is the weather nice today? / Do you think it will rain? / What weather will we have tomorrow?
Can you see rain outside? / Which weather is the best? / Is the sun out now?
Should I take an umbrella? / What does it look like outside? / Tell me about the weather.
How is the sky outside?
""",
    "hobby": """
What hobbies do you have? / What do you enjoy in your free time? / Which hobby is the best?
What is a good hobby for me? / What do you do after dinner for fun? / Which sport do you play?
What is fun to do at the weekend? / How should I spend my free time? / What games do you enjoy?
Would you go {hobby} with me?
""",
    "feeling": """
Are you doing well? / How is your morning going? / How are you doing, little friend?
Do you feel good today? / Are you okay, Pip? / How do you feel this morning?
Today was a bad day for me. / Is your day going well? / My day was really bad.
Do you ever feel {mood}?
""",
    "time": """
Can you say what time it is? / What hour does the clock say? / Is it late or early?
Do you know how late it is? / What is the time now? / At what time do you wake up?
When should I get up tomorrow? / Which time is it? / What time do you start tomorrow?
What time should we meet?
""",
    "music": """
What songs do you like? / Which instrument do you play? / Do you know a good song?
Is there a song that you love? / What should I sing? / Which band do you like?
Can we hear some music? / Tell me about your favourite song. / What music is the best?
Would you play the {music} for me?
""",
    "place": """
Where would you travel this summer? / Which place do you like? / Where is a good place to go?
What city would you like to see? / Where do you want to be next? / Do you know a nice city?
What is the best city to live in? / Have you seen many places? / Where shall we go one day?
Would you travel to {place} with me?
""",
    "counting": """
Can you count up to {limit}, please? / Do you know what {a} plus {b} is?
How much do {a} and {b} make? / Which number is next after {a}? / Can you add {a} and {b}?
How much do you get for {a} plus {b}? / What number comes next after {a}?
Tell me what {a} plus {b} is. / Can you please count for me? / What do you get for {sum} minus {b}?
""",
    "joke": """
What is a good joke? / Can you make me laugh? / Please say something funny!
Do you have a joke for me? / Tell me something funny! / I would love a joke.
One more joke, please! / Could you give me a joke? / What jokes do you know? / A funny joke, please!
""",
    "thanks": """
Thank you, that was very helpful! / Okay, thank you so much! / Thanks for everything!
I want to say thank you. / You are a big help, thanks! / That was kind, thanks!
Thanks, my little friend! / Many thanks, Pip! / How kind of you! / You help me so much!
""",
    "goodbye": """
Bye for now, my friend! / I need to leave, see you later! / Goodbye then, little one!
I really must leave. / Bye bye, see you tomorrow! / I have to go to sleep. / Good night, sleep well!
Well, I am leaving, bye! / It is time to say goodbye. / See you next time, Pip!
""",
}

# The five fixed questions of the demo, of different kinds, held out as well.
DEMO: tuple[tuple[str, str], ...] = (
    ("Hey Pip, tell me who you are!", "name"),
    ("What would you like to cook for me?", "food"),
    ("Do you think it will be snowy tomorrow?", "weather"),
    ("Do you know how much two plus three is?", "counting"),
    ("Where would you go on holiday?", "place"),
)
