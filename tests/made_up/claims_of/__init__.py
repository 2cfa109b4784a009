"""Made-up rows of one seed on which the claims of a paper hold, and such on which each of them fails; a module a paper."""
