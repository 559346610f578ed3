"""The stress test: is a set of heads necessary, decodable, reversible, and does it transfer?"""
